"""From what a user types to a flow."""

from pathlib import Path

import pytest

from penstock.cli.target import TargetError, load_flow
from penstock.flow import Flow

MODULE = """
import penstock
flow = penstock.Flow("declared")
flow.source(penstock.paced(lambda partition, index, seed: index, 10), name="s").sink(print, name="p")
def made(): return flow
number = 3
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my_flows.py").write_text(MODULE)
    (tmp_path / "my_broken.py").write_text("import nowhere_to_be_found")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("target", ["my_flows:flow", "my_flows:made", "primetest"])
@pytest.mark.usefixtures("here")
def test_flows_are_found(target: str) -> None:
    assert isinstance(load_flow(target), Flow)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            "nonsense",
            r"'nonsense' is neither an application \(classifier, .*\) nor of the form module:flow",
        ),
        ("no_such_module:flow", "no module 'no_such_module' to be found from "),
        ("my_flows:missing", "module 'my_flows' has no 'missing'"),
        ("my_flows:number", "'my_flows:number' is a int, not a Flow or a function that returns one"),
    ],
)
@pytest.mark.usefixtures("here")
def test_others_are_refused(target: str, message: str) -> None:
    with pytest.raises(TargetError, match=message):
        load_flow(target)


@pytest.mark.usefixtures("here")
def test_an_import_error_inside_the_module_is_not_hidden() -> None:
    with pytest.raises(ModuleNotFoundError, match="nowhere_to_be_found"):
        load_flow("my_broken:flow")
