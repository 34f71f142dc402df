"""The tasks of the topic classifier."""

from dataclasses import dataclass
from typing import NamedTuple

from penstock.apps.classifier_keywords import next_label
from penstock.apps.rate_limited import RateLimit
from penstock.apps.sentiment import sentiment
from penstock.apps.texts import text
from penstock.flow import Out

PERSONAL = frozenset(
    ("i", "i'm", "i'd", "i've", "my", "me", "we", "our", "us", "think", "feel", "love", "hate", "like", "so")
)


class Labelled(NamedTuple):
    """A tweet and what is known of it so far."""

    number: int
    text: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tweets:
    """`make` of a paced source: the texts, without any label."""

    texts: str | None = None

    def __call__(self, partition: int, index: int, seed: int) -> Labelled:
        assert partition == 0, "the source of tweets has one partition"
        return Labelled(index, text(index, seed, self.texts))


@dataclass(frozen=True, slots=True)
class Classify:
    """Adds the next label; the first `before` labels are of another kind and tell nothing."""

    before: int = 0

    def __call__(self, item: Labelled) -> Labelled:
        label = next_label(item.text, item.labels[self.before :])
        return item._replace(labels=(*item.labels, label))


def judge(item: Labelled) -> Labelled:
    """Adds the sentiment as a label."""
    return item._replace(labels=(*item.labels, sentiment(item.text)))


def is_opinion(words: str) -> bool:
    """Whether a text speaks of the one who wrote it."""
    return not PERSONAL.isdisjoint(words.lower().split())


class Kind:
    """Sends news one way and opinions another."""

    outputs = ("news", "opinions")

    def __init__(self, tweets_per_s: float | None = None) -> None:
        self._limit = RateLimit(tweets_per_s)

    def process(self, item: Labelled, out: Out[Labelled]) -> None:
        begun_s = self._limit.begin()
        opinion = is_opinion(item.text)
        self._limit.end(begun_s)
        if opinion:
            out(item._replace(labels=("opinion",)), "opinions")
        else:
            out(item._replace(labels=("news",)), "news")


def per_path(item: Labelled) -> dict[str, int]:
    """What a board counts: tweets with the same labels."""
    return {"/".join(item.labels): 1}
