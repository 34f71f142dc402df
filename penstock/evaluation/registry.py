"""The applications of the evaluation by name, in the order in which they run."""

import importlib
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from penstock.evaluation.part import Application
    from penstock.evaluation.trial import Trial

APPLICATIONS = {
    "twitter": "penstock.evaluation.twitter",
    "livestream": "penstock.evaluation.livestream",
    "classifier": "penstock.evaluation.classifier",
    "wordcount": "penstock.evaluation.wordcount",
    "primetest": "penstock.evaluation.primetest",
}


class UnknownApplicationError(ValueError):
    """No application of the evaluation, and none of their runs, has this name."""


def find(name: str) -> "Application":
    """The module of an application; imported only now, since it may need an extra."""
    if name not in APPLICATIONS:
        raise UnknownApplicationError(
            f"no application of the evaluation is called {name!r}; there are {', '.join(APPLICATIONS)}"
        )
    return cast("Application", importlib.import_module(APPLICATIONS[name]))


def find_trials(name: str) -> "list[Trial]":
    """The runs of an application, or those whose names begin with `name`, such as primetest-cpu."""
    application = find(name.partition("-")[0])
    every = application.trials()
    found = [one for one in every if one.name == name or one.name.startswith(f"{name}-")]
    if not found:
        raise UnknownApplicationError(
            f"no run of the evaluation is called {name!r}; there are {', '.join(one.name for one in every)}"
        )
    return found
