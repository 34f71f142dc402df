"""The JSON schema of a snapshot, made from the structs so that the two cannot differ.

A schema says which fields there are and of which type; that names exist and sequences are connected is what
`check_snapshot` adds.
"""

from typing import Any

import msgspec

from penstock.stats.snapshot_structs import VERSION, Snapshot


def snapshot_schema() -> dict[str, Any]:
    """The schema of version 2, as in docs/snapshot.schema.json."""
    schema = msgspec.json.schema(Snapshot)
    definition = schema["$defs"]["Snapshot"]
    definition["required"] = ["version", *definition["required"]]
    definition["properties"]["version"] = {"const": VERSION}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Penstock snapshot, version {VERSION}",
        **schema,
    }
