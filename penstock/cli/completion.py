"""What the shell offers when a name is to be typed; see `penstock --install-completion`."""

from collections.abc import Iterable

from penstock.apps.registry import APPS
from penstock.bench.registry import BENCHES
from penstock.operate.client import find


def applications(incomplete: str) -> list[str]:
    """Flows of one's own are modules, which the shell cannot know."""
    return _beginning(incomplete, APPS)


def benches(incomplete: str) -> list[str]:
    """By name."""
    return _beginning(incomplete, BENCHES)


def running_flows(incomplete: str) -> list[str]:
    """Names, and runs where a name stands for several."""
    greetings = [flow.greeting for flow in find().flows]
    names = [greeting.flow for greeting in greetings]
    runs = [greeting.run[:8] for greeting in greetings if names.count(greeting.flow) > 1]
    return _beginning(incomplete, dict.fromkeys([*names, *runs]))


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
