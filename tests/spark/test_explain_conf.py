"""`explain` shows every setting for Spark, and needs no Spark to do so."""

import subprocess
import sys

from penstock.flow import Flow
from penstock.flow.spark_conf import CONF, describe
from penstock.spark.session_conf import merged
from tests.flow.random_flows import Partitioned


def test_every_setting_is_shown_with_its_reason() -> None:
    flow = Flow("f")
    flow.source(Partitioned(1)).sink(print)
    shown = flow.explain().split("\nSpark settings\n")[1].splitlines()
    assert shown == [f"  {line}" for line in describe()]
    applied = merged({})
    for entry, line in zip(CONF, shown, strict=True):
        kind = "fixed" if entry.fixed else "default"
        assert line == f"  {entry.key} = {applied[entry.key]}  ({kind}: {entry.why})"


def test_explaining_imports_no_spark() -> None:
    program = (
        "import sys, penstock as ps\n"
        "flow = ps.Flow('f')\n"
        "flow.source(ps.paced(lambda p, i, s: i, rate=1)).sink(print)\n"
        "assert 'spark.speculation = false' in flow.explain()\n"
        "assert not [name for name in sys.modules if name.split('.')[0] in ('pyspark', 'py4j')]\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
