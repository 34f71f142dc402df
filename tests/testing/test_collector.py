"""The collecting sink for tests."""

import pickle
from pathlib import Path

import pytest

from penstock.testing import Collector
from tests.io.sink_context import FakeContext


def test_items_come_back_from_all_replicas_in_order() -> None:
    with Collector() as collector:
        for replica in (1, 0):
            worker = pickle.loads(pickle.dumps(collector))
            worker.open(FakeContext(replica=replica))
            for n in range(3):
                worker.write((replica, n))
            worker.close()
        assert list(collector.records()) == [(r, n, (r, n)) for r in (0, 1) for n in range(3)]
        assert collector.items() == [(r, n) for r in (0, 1) for n in range(3)]
        collector.clear()
        assert collector.items() == []
    assert not Path(str(collector.directory)).exists()


def test_an_item_being_written_is_not_seen(tmp_path: Path) -> None:
    collector = Collector(tmp_path / "c")
    worker = pickle.loads(pickle.dumps(collector))
    worker.open(FakeContext())
    worker.write("whole")
    worker.close()
    with (tmp_path / "c" / "sink-00000.pickle").open("ab") as file:
        file.write((100).to_bytes(8, "big") + b"torn")
    assert collector.items() == ["whole"]


def test_only_its_own_directory_is_ever_removed(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    with pytest.raises(ValueError, match="is not empty and not a collector's directory"):
        Collector(tmp_path)
    assert (tmp_path / "precious").exists()
    empty = Collector(tmp_path / "new")
    (tmp_path / "new" / ".penstock-collector").unlink()
    empty.close()
    assert (tmp_path / "new").exists()
