"""The schema in the documentation is the one the code reads."""

import json
from pathlib import Path

from penstock.stats.snapshot_schema import snapshot_schema

DOCS = Path(__file__).parents[2] / "docs"


def test_the_documented_schema_is_up_to_date() -> None:
    written = json.loads((DOCS / "snapshot.schema.json").read_text())
    assert written == snapshot_schema(), (
        "write json.dumps(snapshot_schema(), indent=2) to docs/snapshot.schema.json"
    )


def test_fields_are_named_as_in_json() -> None:
    definitions = snapshot_schema()["$defs"]
    assert {"from", "to"} <= set(definitions["StreamStats"]["properties"])
    assert definitions["Snapshot"]["required"] == ["version", "interval_s", "tasks"]
    assert all(definition["additionalProperties"] is False for definition in definitions.values())
