"""What the keywords tell."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock
from penstock.apps.classifier_keywords import KEYWORDS, OTHER, STEPS, next_label
from penstock.apps.classifier_tasks import Classify, Kind, Labelled, Tweets, is_opinion, judge, per_path
from penstock.testing import run


def test_every_word_stands_in_one_place() -> None:
    words = [word for told in KEYWORDS.values() for word in told.split()]
    assert len(words) == len(set(words))
    assert {path.count("/") for path in KEYWORDS} == {STEPS - 1}


@given(st.sampled_from(sorted(KEYWORDS)), st.randoms())
def test_words_of_one_place_lead_there(path: str, random: object) -> None:
    item = Labelled(1, " ".join(KEYWORDS[path].split()))
    for _ in range(STEPS):
        item = Classify()(item)
    assert "/".join(item.labels) == path


@pytest.mark.parametrize(
    ("words", "path", "label"),
    [
        ("Great FILM, great band!", (), "mind"),
        ("film film rain", (), "leisure"),
        ("rain film", (), "world"),
        ("film band", ("leisure", "media"), "screen"),
        ("nothing to see", (), OTHER),
        ("film", (OTHER,), OTHER),
        ("", (), OTHER),
    ],
)
def test_most_words_win_and_the_first_in_a_draw(words: str, path: tuple[str, ...], label: str) -> None:
    assert next_label(words, path) == label


def test_labels_of_another_kind_tell_nothing() -> None:
    item = Labelled(1, "the rain", ("news", "world"))
    assert Classify(before=1)(item).labels == ("news", "world", "nature")


def test_news_and_opinions_go_different_ways() -> None:
    flow = penstock.Flow("kinds")
    kind = flow.source(penstock.paced(Tweets(), 10), name="tweets").task(Kind(), name="kind")
    kind.sink(print, name="news")
    kind["opinions"].sink(print, name="opinions")
    items = [Labelled(number, words) for number, words in enumerate(["I love rain", "rain in the north"])]
    result = run(flow, {"tweets": items})
    assert [(item.number, item.labels) for item in result["opinions"]] == [(0, ("opinion",))]
    assert [(item.number, item.labels) for item in result["news"]] == [(1, ("news",))]


def test_made_up_tweets_are_of_both_kinds_and_of_all_sentiments() -> None:
    items = [Tweets()(0, number, 1) for number in range(300)]
    assert 50 < sum(is_opinion(item.text) for item in items) < 250
    assert {judge(item).labels[-1] for item in items} == {"positive", "neutral", "negative"}
    told = [Classify()(item).labels[0] for item in items]
    assert told.count(OTHER) < 30


def test_the_board_counts_paths() -> None:
    assert per_path(Labelled(1, "rain", ("world", "nature"))) == {"world/nature": 1}
