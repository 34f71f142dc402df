#!/bin/sh
# Installs the wheel of a directory (dist) into fresh environments outside of the checkout, one for each Python that is
# here, and runs a flow in each: all of its items must arrive. PYTHONS names other ones: PYTHONS="3.12 /opt/python3.13".
# The packages come from where pip finds them; the Java runtime is that of the machine.
set -eu

wheel=$(ls "$(cd "${1:-dist}" && pwd)"/penstock-*.whl)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV

cat > trial.py <<'PYTHON'
import penstock


def number(partition, index, seed):
    return index


def double(item):
    return 2 * item


flow = penstock.Flow("trial")
numbers = flow.source(penstock.paced(number, rate=500, count=1000), name="numbers")
numbers.map(double, parallelism=penstock.elastic(1, 2)).sink(penstock.jsonl("doubled"), name="doubled")
flow.constrain("100 ms", ["numbers->double", "double", "double->doubled"])
PYTHON

cat > looked_at.py <<'PYTHON'
import json
import sys
from pathlib import Path

import penstock

assert Path(penstock.__file__).is_relative_to(sys.prefix), penstock.__file__
parts = sorted(Path("doubled").glob("part-*.jsonl"))
found = sorted(json.loads(line) for part in parts for line in part.read_text().splitlines())
assert found == [2 * number for number in range(1000)], f"{len(found)} items in {len(parts)} files"
PYTHON

# A number becomes the command of that Python, or the newest one of pyenv.
python_of() {
    case "$1" in */*) echo "$1"; return ;; esac
    for candidate in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python; do
        if "$candidate" -c 'import venv, ensurepip' >/dev/null 2>&1; then echo "$candidate"; return; fi
    done
}

checked=0
for wanted in ${PYTHONS:-3.11 3.12 3.13}; do
    python=$(python_of "$wanted")
    if [ -z "$python" ]; then
        echo "Python $wanted: not here, not checked"
        continue
    fi
    rm -rf environment doubled
    "$python" -m venv environment
    environment/bin/python -m pip install --quiet --disable-pip-version-check "$wheel"
    environment/bin/penstock doctor >doctor.txt || { cat doctor.txt; exit 1; }
    environment/bin/penstock run trial:flow >run.txt 2>&1 || { cat run.txt; exit 1; }
    environment/bin/python looked_at.py || { cat run.txt; exit 1; }
    echo "Python $("$python" -c 'import platform; print(platform.python_version())'): installed, 1000 items arrived"
    checked=$((checked + 1))
done
[ "$checked" -gt 0 ] || { echo "no Python was checked" >&2; exit 1; }
