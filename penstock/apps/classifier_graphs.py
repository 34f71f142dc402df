"""The two graphs of the topic classifier: four tasks in a row, and one with branches."""

import itertools
from collections.abc import Callable
from typing import Any

import penstock
from penstock.apps.classifier_tasks import Classify, Kind, Labelled, judge
from penstock.apps.rate_limited import RateLimited
from penstock.durations import Duration
from penstock.extras import require
from penstock.flow import Output, Parallelism
from penstock.io import Paced

TASKS = ("topic", "subtopic", "category", "subcategory")


def row(
    tweets: Paced[Labelled],
    sink: Any,
    *,
    replicas: Parallelism | int,
    tweets_per_s: float | None = None,
    bound: Duration = "500 ms",
    window: Duration = "5 s",
) -> penstock.Flow:
    """source -> topic -> subtopic -> category -> subcategory -> sink; `tweets_per_s` limits each replica."""
    flow = penstock.Flow("classifier")
    last = flow.source(tweets, name="source")
    for name in TASKS:
        last = last.map(RateLimited(Classify(), tweets_per_s), name=name, parallelism=replicas)
    last.sink(sink, name="sink")
    names = ("source", *TASKS, "sink")
    path = [element for a, b in itertools.pairwise(names) for element in (f"{a}->{b}", b)][:-1]
    flow.constrain(bound, path, window=window, name="tweets")
    return flow


def branches(
    tweets: Paced[Labelled],
    sink: Any,
    *,
    replicas: Parallelism | int,
    tweets_per_s: float | None = None,
    bound: Duration = "500 ms",
    window: Duration = "5 s",
) -> penstock.Flow:
    """source -> kind, then news -> topic -> subtopic -> sink and opinions -> sentiment -> subject -> sink.

    Labels are news/topic/subtopic and opinion/sentiment/subject.
    """
    require("vaderSentiment", "apps", "the classifier with branches")
    flow = penstock.Flow("classifier")
    source = flow.source(tweets, name="source")
    kind = source.task(Kind(tweets_per_s), name="kind", parallelism=replicas)

    def then(before: Output[Labelled], work: Callable[[Labelled], Labelled], name: str) -> Output[Labelled]:
        return before.map(RateLimited(work, tweets_per_s), name=name, parallelism=replicas)

    news = then(then(kind, Classify(before=1), "topic"), Classify(before=1), "subtopic")
    opinions = then(then(kind["opinions"], judge, "sentiment"), Classify(before=2), "subject")
    flow.sink(sink, news, opinions, name="sink")
    flow.constrain(bound, start="source->kind", end="subtopic->sink", window=window, name="news")
    flow.constrain(bound, start=kind, end="subject->sink", window=window, name="opinions")
    return flow
