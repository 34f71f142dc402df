"""The applications of the evaluation by name, in the order in which they run."""

import importlib
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from penstock.evaluation.part import Application

APPLICATIONS = {
    "twitter": "penstock.evaluation.twitter",
    "livestream": "penstock.evaluation.livestream",
    "classifier": "penstock.evaluation.classifier",
    "wordcount": "penstock.evaluation.wordcount",
    "primetest": "penstock.evaluation.primetest",
}


class UnknownApplicationError(ValueError):
    """No application of the evaluation has this name."""


def find(name: str) -> "Application":
    """The module of an application; imported only now, since it may need an extra."""
    if name not in APPLICATIONS:
        raise UnknownApplicationError(
            f"no application of the evaluation is called {name!r}; there are {', '.join(APPLICATIONS)}"
        )
    return cast("Application", importlib.import_module(APPLICATIONS[name]))
