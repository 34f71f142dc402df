"""Every form of task, and the hooks of tasks that are objects."""

from typing import Any

import pytest

from penstock.flow.graph import Form, Task
from penstock.flow.parallelism import fixed
from penstock.worker.context import Context, Out
from penstock.worker.outbox import Outbox
from penstock.worker.steps import Body

OUTBOX = Outbox(lambda _: None, 2, with_ids=False)


class Kept(Out):
    """Keeps what a task puts out."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    def __call__(self, item: Any, output: str | None = None) -> None:
        self.items.append(item if output is None else (output, item))


def task(form: Form, body: object, outputs: tuple[str, ...] = ("out",)) -> Task:
    kind = "sink" if form.startswith("sink") else "task"
    return Task("t", kind, form, body, fixed(1), outputs=outputs)  # type: ignore[arg-type]


def made(form: Form, body: object) -> tuple[Body, Kept]:
    out = Kept()
    return Body(task(form, body), Context("flow", "t", 2, OUTBOX), out), out


@pytest.mark.parametrize(
    ("form", "body", "expected"),
    [
        ("map", lambda item: item * 10, [0, 10, 20]),
        ("flat_map", lambda item: [item] * item, [1, 2, 2]),
        ("flat_map", lambda item: iter((item, -item)), [0, 0, 1, -1, 2, -2]),
        ("filter", lambda item: item % 2 == 0, [0, 2]),
    ],
)
def test_functions(form: Form, body: object, expected: list[int]) -> None:
    step, out = made(form, body)
    for item in range(3):
        step.step(item)
    assert out.items == expected


def test_a_sink_may_be_a_function() -> None:
    seen: list[int] = []
    body, out = made("sink_function", seen.append)
    body.step(5)
    for hook in (body.open, body.flush, body.close):
        hook()
    assert (seen, out.items) == ([5], [])


class Thorough:
    """Has every hook."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def open(self, context: Context) -> None:
        self.calls.append(f"open {context.flow} {context.task} {context.replica}")

    def process(self, item: int, out: Out) -> None:
        out(item + 1)
        out(item, "late")

    def write(self, item: int) -> None:
        self.calls.append(f"write {item}")

    def timer(self, out: Out) -> None:
        out("tick")

    def flush(self) -> None:
        self.calls.append("flush")

    def close(self, out: Out) -> None:
        out("rest")


def test_hooks_of_an_object() -> None:
    given = Thorough()
    body, out = made("object", given)
    body.open()
    body.step(1)
    body.timer()
    body.flush()
    body.close()
    assert given.calls == ["open flow t 2", "flush"]
    assert out.items == [2, ("late", 1), "tick", "rest"]


def test_a_class_is_instantiated_and_needs_no_hooks() -> None:
    class Least:
        made = 0

        def __init__(self) -> None:
            Least.made += 1

        def process(self, item: int, out: Out) -> None:
            out(item)

    body, out = made("object", Least)
    body.open()
    body.step(1)
    body.step(2)
    body.flush()
    body.close()
    assert (out.items, Least.made) == ([1, 2], 1)


def test_a_sink_object_closes_without_an_output() -> None:
    class Quiet:
        closed = False

        def __init__(self) -> None:
            self.items: list[int] = []

        def write(self, item: int) -> None:
            self.items.append(item)

        def close(self) -> None:
            Quiet.closed = True

    given = Quiet()
    body, _ = made("sink_object", given)
    body.step(4)
    body.close()
    assert given.items == [4]
    assert Quiet.closed


@pytest.mark.parametrize(
    ("outputs", "problem"),
    [
        (("hits", "late"), 'task "t" has no output "lat"; it declares hits, late'),
        ((), 'task "t" has no output "lat"; it declares none'),
    ],
)
def test_an_unknown_output_is_refused(outputs: tuple[str, ...], problem: str) -> None:
    out = Out(task("object", Thorough, outputs), [], OUTBOX)
    out("dropped: nothing reads the first output")
    with pytest.raises(LookupError) as caught:
        out(1, "lat")
    assert str(caught.value) == problem


def test_writing_is_noticed_once_per_item() -> None:
    written: list[str] = []
    out = Out(task("object", Thorough, ("hits",)), [], OUTBOX, lambda: written.append("wrote"))
    out(1)
    out(2, "hits")
    assert written == ["wrote", "wrote"]


def test_nothing_put_together_is_no_writing() -> None:
    written: list[str] = []
    out = Out(task("flat_map_batches", list), [], OUTBOX, lambda: written.append("wrote"))
    out.many([])
    assert written == []
    out.many([1, 2])
    assert written == ["wrote"]
