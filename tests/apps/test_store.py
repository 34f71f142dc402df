"""The table of tweets."""

from pathlib import Path

import pytest

from penstock.apps.classifier_tasks import Labelled
from penstock.apps.store import Store, stored
from tests.io.sync_watch import watch_syncs

NORMAL = 1


def test_a_tweet_that_comes_twice_is_kept_once(tmp_path: Path) -> None:
    path = tmp_path / "new" / "tweets.sqlite"
    for _ in range(2):
        store = Store(path)
        store.open(None)
        store.write(Labelled(1, "rain", ("world", "nature")))
        store.write(Labelled(2, "sun", ("other",)))
        store.close()
    assert stored(path) == {1: "world/nature", 2: "other"}


def test_rows_are_there_before_the_store_is_closed(tmp_path: Path) -> None:
    store = Store(tmp_path / "tweets.sqlite")
    store.open(None)
    store.write(Labelled(7, "rain"))
    assert stored(tmp_path / "tweets.sqlite") == {7: ""}
    store.close()


def test_rows_are_on_the_disk_after_flush(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = watch_syncs(monkeypatch)
    store = Store(tmp_path / "tweets.sqlite")
    store.flush()
    store.open(None)
    store.write(Labelled(7, "rain"))
    assert synced == []
    store.flush()
    assert synced == ["tweets.sqlite-wal", tmp_path.name]
    store.flush()
    store.write(Labelled(8, "sun"))
    assert len(synced) == 2
    store.close()
    assert synced[2:] == ["tweets.sqlite-wal"], "a sink may be closed in the middle of a batch"
    store.flush()


def test_rows_of_a_killed_process_are_synced_by_its_successor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed, successor = Store(tmp_path / "tweets.sqlite"), Store(tmp_path / "tweets.sqlite")
    killed.open(None)
    killed.write(Labelled(7, "rain"))
    successor.open(None)
    synced = watch_syncs(monkeypatch)
    successor.flush()
    assert synced == ["tweets.sqlite-wal", tmp_path.name]


def test_sqlite_itself_syncs_what_it_moves_out_of_its_log(tmp_path: Path) -> None:
    store = Store(tmp_path / "tweets.sqlite")
    store.open(None)
    assert store._database is not None
    assert store._database.execute("PRAGMA synchronous").fetchone() == (NORMAL,)
    store.close()
