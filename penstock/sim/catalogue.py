"""What `penstock simulate` can run: applications and their profiles, by name."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.sim.workloads import classifier, livestream, primetest, twitter, wordcount

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.sim.model import FlowModel


class UnknownWorkloadError(ValueError):
    """No application or profile has this name."""


@dataclass(frozen=True, slots=True)
class Application:
    """An application: its profiles, the first of which is the default."""

    name: str
    summary: str
    profiles: Mapping[str, Callable[[], FlowModel]]


APPLICATIONS = {
    application.name: application
    for application in (
        Application(
            "primetest",
            "prime tests of small items at high rates, one constraint of 20 ms",
            {
                "paper": primetest.elastic,
                "tenth": lambda: primetest.elastic(share=0.1),
                "unelastic": primetest.unelastic,
                "two-cores": primetest.two_cores,
                "30ms": lambda: primetest.elastic(30.0),
                "40ms": lambda: primetest.elastic(40.0),
                "50ms": lambda: primetest.elastic(50.0),
                "100ms": lambda: primetest.elastic(100.0),
            },
        ),
        Application("twitter", "hot topics and sentiments, two constraints", {"paper": twitter.model}),
        Application(
            "livestream",
            "400 video pipelines that can be chained, one constraint of 50 ms",
            {"paper": livestream.model, "tenth": lambda: livestream.model(pipelines=40)},
        ),
        Application(
            "wordcount",
            "rate-limited word count of Dhalion and DS2",
            {"heron": wordcount.heron, "flink": wordcount.flink},
        ),
        Application(
            "classifier",
            "four tasks in a row or with branches, adaptive Storm",
            {
                "gaussian": classifier.gaussian,
                "gaussian-restart": lambda: classifier.gaussian(restart=True),
                "peaks": classifier.peaks,
                "branches": classifier.branches,
            },
        ),
    )
}


def find_workload(application: str, profile: str | None = None) -> FlowModel:
    """The flow model of an application's profile."""
    if application not in APPLICATIONS:
        raise UnknownWorkloadError(_unknown("application", application, list(APPLICATIONS)))
    profiles = APPLICATIONS[application].profiles
    wanted = next(iter(profiles)) if profile is None else profile
    if wanted not in profiles:
        raise UnknownWorkloadError(_unknown(f"profile of {application}", wanted, list(profiles)))
    return profiles[wanted]()


def _unknown(what: str, name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"no {what} is called {name!r}; {hint}there are {', '.join(known)}"
