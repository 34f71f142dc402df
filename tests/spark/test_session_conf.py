"""The settings of a session: ours, the user's over them, and the refusal of what cannot work."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.flow.errors import FlowError
from penstock.flow.spark_conf import CONF, EXTENSIONS, LINKS, PLUGIN, SEALED, SHUFFLE, SPARKS, ConfEntry
from penstock.spark.session_conf import merged, missing_from, sealed

FIXED = [entry for entry in CONF if entry.fixed and not entry.listed]
free = st.sampled_from([entry.key for entry in CONF if not entry.fixed])


def test_without_wishes_everything_is_ours() -> None:
    assert merged({}) == {entry.key: entry.value for entry in CONF}
    assert len(merged({})) == len(CONF)


@given(st.dictionaries(free | st.just("spark.acme"), st.text()))
def test_what_is_not_fixed_is_the_users(user: dict[str, str]) -> None:
    together = merged(user)
    assert together.items() >= user.items()
    assert missing_from(together) == []


@pytest.mark.parametrize(
    ("key", "value", "needed"),
    [
        ("spark.dynamicAllocation.enabled", "true", "false"),
        ("spark.speculation", "TRUE", "false"),
        ("spark.sql.adaptive.enabled", "true", "false"),
        ("spark.sql.unionOutputPartitioning", "true", "false"),
        ("spark.task.maxFailures", "4", "1"),
    ],
)
def test_what_cannot_work_is_refused_with_its_reason(key: str, value: str, needed: str) -> None:
    (entry,) = [s for s in CONF if s.key == key]
    with pytest.raises(FlowError) as caught:
        merged({key: value})
    assert str(caught.value) == (
        f"setting {key}={value} cannot be used with Penstock, which needs {needed} ({entry.why}); remove it"
    )


@pytest.mark.parametrize("entry", FIXED, ids=lambda entry: entry.key)
def test_what_is_needed_may_be_said_in_any_spelling(entry: ConfEntry) -> None:
    said = f" {entry.value.upper()} "
    assert merged({entry.key: said})[entry.key] == said


@pytest.mark.parametrize(("key", "ours"), [("spark.plugins", PLUGIN), ("spark.sql.extensions", EXTENSIONS)])
def test_own_plugins_and_extensions_stand_beside_ours(key: str, ours: str) -> None:
    assert merged({key: "com.acme.Audit"})[key] == f"com.acme.Audit,{ours}"
    assert merged({key: f"{ours}, com.acme.Audit"})[key] == f"{ours}, com.acme.Audit"
    assert merged({key: ""})[key] == ours


def test_a_foreign_session_lacks_what_is_fixed() -> None:
    assert missing_from({}) == [entry for entry in CONF if entry.fixed]
    present = merged({"spark.plugins": "com.acme.Audit"})
    assert missing_from(present) == []
    assert [s.key for s in missing_from({**present, "spark.plugins": "com.acme.Audit"})] == ["spark.plugins"]


@pytest.mark.parametrize("master", ["local-cluster[2,6,1024]", "spark://host:7077", "yarn"])
def test_between_executors_rows_of_sparks_own_shuffle_are_sealed(master: str) -> None:
    assert sealed(merged({SHUFFLE: SPARKS}), master)[SHUFFLE] == SEALED
    assert sealed(merged({}), master) == merged({})


@pytest.mark.parametrize("master", ["local", "local[4]", "local[*]"])
def test_in_one_process_nobody_is_asked(master: str) -> None:
    assert sealed(merged({SHUFFLE: SPARKS}), master)[SHUFFLE] == SPARKS
    assert sealed(merged({}), master)[SHUFFLE] == LINKS
