"""The table of tweets."""

from pathlib import Path

from penstock.apps.classifier_tasks import Labelled
from penstock.apps.store import Store, stored


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
