"""What a trial from topic to topic checks, on records that are made up."""

from pathlib import Path

import msgspec

from penstock.epochs.batches import Positions
from penstock.faults import checker
from penstock.faults.kafka_bed import (
    ORDERS,
    PARTITIONS,
    SOURCE,
    Record,
    committed,
    entries_of,
    ids_mixed_up,
)
from penstock.wire.ids import origin_of
from penstock.wire.orders import Position


def record(number: int, *, hop: int = 7) -> Record:
    """As the flow of a trial writes it."""
    origin = origin_of(SOURCE, f"{ORDERS}-{number % PARTITIONS}")
    item_id = f"{origin}.{number // PARTITIONS}.{hop}".encode()
    return Record(item_id, number, 1_000_000 * number, 1_000_000 * number + 5)


def test_all_once_is_all_well() -> None:
    records = [record(number) for number in range(10)]
    entries = entries_of(records)
    assert (entries.lost({0: 4, 1: 3, 2: 3}), entries.duplicated(), ids_mixed_up(records)) == (0, 0, 0)


def test_what_is_missing_is_lost() -> None:
    entries = entries_of([record(number) for number in range(10) if number != 4])
    assert entries.lost({0: 4, 1: 3, 2: 3}) == 1
    assert entries.lost({0: 4, 1: 3, 2: 4}) == 2


def test_copies_count_if_a_commit_had_covered_them() -> None:
    entries = entries_of([record(number) for number in (0, 3, 3, 6, 6, 1)])
    assert entries.duplicated() == 2
    assert checker.twice_though_committed(entries, {0: 2, 1: 1, 2: 0}, 0) == 1


def test_a_copy_with_another_id_and_an_id_of_two_records_are_seen() -> None:
    assert ids_mixed_up([record(0), record(0)]) == 0
    assert ids_mixed_up([record(0), record(0, hop=8)]) == 1
    assert ids_mixed_up([record(0), record(1)._replace(item_id=record(0).item_id)]) == 1


def test_offsets_of_the_last_commit(tmp_path: Path) -> None:
    assert committed(tmp_path) == {}
    for name in ("commits", "offsets"):
        (tmp_path / name).mkdir()
    for batch, offset in ((0, 5), (11, 9), (2, 7)):
        splits = {f"{ORDERS}-{number}": Position(0, offset + number) for number in range(PARTITIONS)}
        text = msgspec.json.encode(Positions(2, {SOURCE: splits})).decode()
        (tmp_path / "offsets" / str(batch)).write_text(f"v1\n{{}}\n{text}")
        (tmp_path / "commits" / str(batch)).touch()
    assert committed(tmp_path) == {0: 9, 1: 10, 2: 11}
