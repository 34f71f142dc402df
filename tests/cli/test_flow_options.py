"""Options of a flow: by the signature of the function that makes it."""

from typing import Any, Literal

import pytest
from typer.testing import CliRunner

from penstock.cli.flow_options import FlowOptionError, keywords
from penstock.cli.main import app


def make(
    *, seconds: float = 3.0, replicas: int = 2, out: str | None = None, work: Literal["cpu", "sleep"] = "cpu"
) -> None: ...


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ([], {}),
        (["seconds=30", "replicas=4"], {"seconds": 30.0, "replicas": 4}),
        (["out=a=b.json", "work=sleep"], {"out": "a=b.json", "work": "sleep"}),
    ],
)
def test_options_become_what_the_function_declares(options: list[str], found: dict[str, Any]) -> None:
    assert keywords(make, "mine", options) == found


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("speed=3", "'mine' has no option 'speed'; it has seconds=3.0, replicas=2, out=, work=cpu"),
        ("seconds", "option 'seconds' of 'mine': write it as name=value"),
        ("replicas=two", "option replicas of 'mine': 'two' will not do: Expected `int`"),
        ("work=rest", "option work of 'mine': 'rest' will not do: Invalid enum value 'rest'"),
    ],
)
def test_others_are_refused(option: str, message: str) -> None:
    with pytest.raises(FlowOptionError) as refused:
        keywords(make, "mine", [option])
    assert str(refused.value).startswith(message)


def test_explain_takes_them() -> None:
    shown = CliRunner().invoke(app, ["explain", "wordcount", "-o", "counters=7"]).output
    assert "elastic(1, 40, initial=7, pool=40)" in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["wordcount", "-o", "speed=1"], "'wordcount' has no option 'speed'; it has seconds=180.0"),
        (["twitter", "-o", "trace=nowhere.csv"], "application 'twitter': [Errno 2] No such file"),
        (["twitter", "-o", "texts=nowhere.tsv"], "application 'twitter': file of texts "),
    ],
)
def test_what_will_not_do_exits_with_2_and_says_so(options: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["explain", *options])
    assert result.exit_code == 2
    assert message in result.stderr
