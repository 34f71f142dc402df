"""Which names are allowed, and which one comes with a body."""

import functools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.flow import FlowError
from penstock.flow.names import check_name, own_name


class Hot:
    def tell(self) -> None: ...


def double(item: int) -> int:
    return 2 * item


@given(st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", fullmatch=True))
def test_allowed(name: str) -> None:
    assert check_name(name, "task name") == name


@given(st.text())
def test_any_other_text_is_refused(text: str) -> None:
    allowed = text.isascii() and text.replace("_", "a").replace("-", "1").isalnum()
    if not allowed or text[0] in "-0123456789" or len(text) > 64:
        with pytest.raises(FlowError, match=r"^task name "):
            check_name(text, "task name")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "task name is empty; give it at least one letter"),
        (
            "a b",
            "task name 'a b' is not allowed; use letters, digits, _ and -, beginning with a letter or _",
        ),
        (
            "a\n",
            "task name 'a\\n' is not allowed; use letters, digits, _ and -, beginning with a letter or _",
        ),
        ("x" * 65, f"task name '{'x' * 65}' has 65 characters; at most 64 are allowed"),
        (7, "task name must be a string, not 7"),
    ],
)
def test_refused(name: object, message: str) -> None:
    with pytest.raises(FlowError) as refused:
        check_name(name, "task name")
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (double, "double"),
        (Hot, "Hot"),
        (Hot(), "Hot"),
        (Hot().tell, "tell"),
        (print, "print"),
        (functools.partial(functools.partial(double), 1), "double"),
        (lambda item: item, None),
    ],
)
def test_own_name(body: object, name: str | None) -> None:
    assert own_name(body) == name
