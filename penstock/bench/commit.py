"""What commits of state cost: a flow with one each second against one without, and the files of a replica."""

from collections.abc import Sequence

from penstock.bench.commit_each_second import each_second
from penstock.bench.commit_files import files
from penstock.bench.harness import Effort, Result
from penstock.bench.parts import Part, run_parts

EXPERIMENTS: dict[str, Part] = {"files": files, "each_second": each_second}


def bench(effort: Effort, only: Sequence[str] = ()) -> Result:
    """Both, or one of them."""
    return run_parts("commit", EXPERIMENTS, effort, only)
