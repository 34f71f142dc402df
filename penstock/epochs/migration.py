"""State of a flow whose tasks, declarations or classes have changed since it was written.

Every file says what its task declared: the kind and the version of each name. A start holds that against what
is declared now; what nobody asked to be renamed, dropped or migrated is refused, in words.
"""

import pickle
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from penstock.epochs.entries import CellForm, Entry, StateFile
from penstock.epochs.errors import LogError
from penstock.epochs.portions import Change
from penstock.state import Cell, Declared, Timer

Adapt = Callable[[Change], Change | None]


class Asked(msgspec.Struct, frozen=True):
    """What a flow wants of the state that it finds.

    `tasks` are those with state, `was` their earlier names, `dropped` tasks, or names as "TASK.NAME".
    """

    tasks: tuple[str, ...]
    forms: dict[str, dict[str, "Form"]] = {}
    was: dict[str, str] = {}
    dropped: tuple[str, ...] = ()


class Form(msgspec.Struct, frozen=True):
    """A declaration of now."""

    kind: str
    version: int = 1
    was: str | None = None
    migrates: bool = False


def forms_of(parts: Iterable[Declared]) -> dict[str, Form]:
    """Of what a class declares."""
    found = {}
    for part in parts:
        if isinstance(part, Cell):
            found[part.name] = Form(part.kind, part.version, part.was, part.migrate is not None)
        elif isinstance(part, Timer):
            found[part.name] = Form("timer", was=part.was)
    return found


def written_forms(parts: Iterable[Declared]) -> tuple[CellForm, ...]:
    """The same, as files have it."""
    return tuple(CellForm(name, form.kind, form.version) for name, form in forms_of(parts).items())


def adopted(entry: Entry, asked: Asked) -> Entry:
    """The state for the flow that asks: of its tasks by their names of now; refused if something is left."""
    renamed = {old: new for new, old in asked.was.items()}
    files, pools = [], {}
    for file in entry.files:
        if file.task not in asked.dropped:
            files.append(_renamed(file, renamed, asked, entry))
    for task, replicas in entry.pools.items():
        if task not in asked.dropped:
            pools[renamed.get(task, task) if task not in asked.tasks else task] = replicas
    for file in files:
        _check(file, asked)
    return msgspec.structs.replace(entry, files=tuple(files), pools=pools)


def _renamed(file: StateFile, renamed: Mapping[str, str], asked: Asked, entry: Entry) -> StateFile:
    if file.task in asked.tasks:
        return file
    if file.task not in renamed:
        raise LogError(
            f'it has state of task "{file.task}", which the flow does not have or which declares none'
            f" any more (with state it has {', '.join(asked.tasks) or 'none'}): give it back its name, say"
            f' was="{file.task}" at the task that it is now, or drop it with drop_state=["{file.task}"]'
        )
    new = renamed[file.task]
    if any(other.task == new for other in entry.files):
        raise LogError(
            f'it has state of task "{new}" and of "{file.task}", which "{new}" was; drop one of them'
        )
    return msgspec.structs.replace(file, task=new, stored_as=file.stored_as or file.task)


def _check(file: StateFile, asked: Asked) -> None:
    forms = asked.forms.get(file.task, {})
    if not forms:
        return
    for before in file.cells:
        name = before.name
        if f"{file.task}.{name}" in asked.dropped:
            continue
        found = _now(forms, name)
        where = f'task "{file.task}" kept {name}'
        if found is None:
            raise LogError(
                f'{where} ({before.kind}), which it does not declare any more: say was="{name}" where it is'
                f' declared now, or drop it with drop_state=["{file.task}.{name}"]'
            )
        form = found[1]
        if before.version > form.version:
            raise LogError(
                f"{where} in version {before.version}, and declares version {form.version}: it was written by"
                " a newer program"
            )
        if (before.kind, before.version) != (form.kind, form.version) and not form.migrates:
            raise LogError(
                f"{where} as {before.kind} in version {before.version}, and declares {form.kind} in version"
                f" {form.version}: give it a migrate= function, or another name"
            )


def _now(forms: Mapping[str, Form], name: str) -> tuple[str, Form] | None:
    """By its name, or by the one that it was."""
    if name in forms:
        return name, forms[name]
    return next(((now, form) for now, form in forms.items() if form.was == name), None)


def _unsaid(forms: Mapping[str, Form]) -> tuple[CellForm, ...]:
    """What a file is taken to have that does not say so: what is declared now, in version 1."""
    return tuple(CellForm(form.was or name, form.kind) for name, form in forms.items())


def adapter(file: StateFile, parts: Sequence[Declared], dropped: Collection[str]) -> Adapt | None:
    """How to change what a file has; None if that is as it is declared now."""
    forms = forms_of(parts)
    cells = {part.name: part for part in parts if isinstance(part, Cell)}
    names: dict[str, str | None] = {}
    migrated: dict[str, int] = {}
    for before in file.cells or _unsaid(forms):
        name = before.name
        found = _now(forms, name)
        if found is None or f"{file.task}.{name}" in dropped:
            names[name] = None
            continue
        now, form = found
        if now != name:
            names[name] = now
        if (before.kind, before.version) != (form.kind, form.version):
            migrated[name] = before.version
    if not names and not migrated:
        return None

    def adapt(change: Change) -> Change | None:
        name = change.name or ""
        now = names.get(name, name)
        if now is None:
            return None
        value = change.value
        if name in migrated and value is not None:
            migrate = cells[now].migrate
            assert migrate is not None, "a start without it was refused"
            value = pickle.dumps(migrate(pickle.loads(value), migrated[name]))
        return Change(change.group, change.key, value, change.until, now)

    return adapt
