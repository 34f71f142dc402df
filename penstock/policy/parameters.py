"""Settings of policies and guards: `<group>.<name>=<value>` to a parameter struct, and their description.

A parameter is a field of a frozen msgspec struct with a default, described in place:

    utilization_max: Annotated[float, Meta(gt=0, le=1, description="...", extra={"unit": "share"})] = 0.9
"""

import difflib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, get_type_hints

import msgspec

from penstock.stats.wording import complaint


class SettingError(ValueError):
    """A setting that cannot be used; the message names it and what would be right."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One documented parameter, named as `--set` takes it."""

    name: str
    default: Any
    unit: str
    meaning: str


def describe(group: str, kind: type[msgspec.Struct]) -> list[Parameter]:
    """The parameters of a struct, in the order they are declared."""
    hints = get_type_hints(kind, include_extras=True)
    described = []
    for field in msgspec.structs.fields(kind):
        metas = [m for m in getattr(hints[field.name], "__metadata__", ()) if isinstance(m, msgspec.Meta)]
        default = field.default if field.default is not msgspec.NODEFAULT else _made(field.default_factory)
        unit = next((str(meta.extra["unit"]) for meta in metas if meta.extra and "unit" in meta.extra), "")
        meaning = next((meta.description for meta in metas if meta.description), "")
        described.append(Parameter(f"{group}.{field.encode_name}", default, unit, meaning))
    return described


def parse_settings(
    settings: Iterable[str], groups: Mapping[str, type[msgspec.Struct]]
) -> dict[str, msgspec.Struct]:
    """One parameter struct for each group, the given settings in place of its defaults.

    Values are JSON (`0.8`, `true`, `null`, `[0.8, 1.2]`); what is not JSON is a text.
    """
    given: dict[str, dict[str, Any]] = {group: {} for group in groups}
    for setting in settings:
        key, equals, text = setting.partition("=")
        group, dot, name = key.strip().partition(".")
        if not equals or not dot or not name:
            raise SettingError(f"setting {setting!r}: expected <policy>.<name>=<value>")
        if group not in groups:
            raise SettingError(
                f"setting {key.strip()!r}: nothing called {group!r} is in use; {_known(groups)}"
            )
        names = [field.encode_name for field in msgspec.structs.fields(groups[group])]
        if name not in names:
            raise SettingError(
                f"setting {key.strip()!r}: {group} has no parameter {name!r}; {_hint(name, names)}"
            )
        given[group][name] = _value(text.strip(), key.strip())
    return {group: _convert(group, values, groups[group]) for group, values in given.items()}


def as_settings(given: str | Iterable[str] | Mapping[str, object]) -> tuple[str, ...]:
    """Settings in any form that users write them in, as `parse_settings` takes them.

    >>> as_settings({"ds2.headroom": 0.2, "nephele.fit_limits": [0, 3]})
    ('ds2.headroom=0.2', 'nephele.fit_limits=[0,3]')
    """
    if isinstance(given, str):
        return (given,)
    if isinstance(given, Mapping):
        return tuple(_setting(name, value) for name, value in given.items())
    return tuple(given)


def settings_of(group: str, parameters: msgspec.Struct) -> list[str]:
    """Every parameter of a struct as a setting."""
    fields = msgspec.structs.fields(parameters)
    return [_setting(f"{group}.{field.encode_name}", getattr(parameters, field.name)) for field in fields]


def _setting(name: str, value: object) -> str:
    try:
        return f"{name}={msgspec.json.encode(value).decode()}"
    except TypeError:
        raise SettingError(
            f"setting {name!r}: {value!r} is no value; give a number, a text or a list"
        ) from None


def _value(text: str, key: str) -> Any:
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return text
    if isinstance(value, float) and not math.isfinite(value):
        raise SettingError(f"setting {key!r}: {text} is not a finite number")
    return value


def _convert(group: str, values: dict[str, Any], kind: type[msgspec.Struct]) -> msgspec.Struct:
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        problem, _, where = str(error).partition(" - at `$.")
        key = f"{group}.{where.rstrip('`')}" if where else group
        name = where.rstrip("`").partition("[")[0]
        got = f", got {json.dumps(values[name])}" if name in values else ""
        raise SettingError(f"setting {key!r}: {complaint(problem, kind, name)}{got}") from None


def _made(factory: Any) -> Any:
    return None if factory is msgspec.NODEFAULT else factory()


def _known(groups: Mapping[str, object]) -> str:
    return "there are settings of " + ", ".join(sorted(groups))


def _hint(name: str, names: list[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else "it has " + (", ".join(names) or "none")
