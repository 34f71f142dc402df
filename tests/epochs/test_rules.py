"""Every rule of the protocol is needed: without it a property breaks, in a run that is known."""

from dataclasses import fields, replace
from random import Random

import pytest

from tests.epochs.model.rules import Rules
from tests.epochs.model.scenarios import WITHOUT, broken
from tests.epochs.model.world import World

TRIES = 40
"""A change of the model may take the violation to a run nearby."""


@pytest.mark.parametrize("rule", [field.name for field in fields(Rules)])
def test_it_breaks_without(rule: str) -> None:
    setting, seed = WITHOUT[rule]
    found = broken(setting, Rules().without(rule), range(seed, seed + TRIES))
    assert found is not None, f"no run shows what {rule} is for; look for a seed with a wider range"
    World(setting, Rules()).run(Random(found[0]), 150)


@pytest.mark.parametrize("rule", ["table_in_mark", "moved_are_held", "next_mark_waits", "moves_never_pass"])
def test_it_breaks_without_where_the_entry_hands_state_over(rule: str) -> None:
    setting = replace(WITHOUT[rule][0], by_entry=True)
    found = broken(setting, Rules().without(rule), range(TRIES))
    assert found is not None, f"no run shows what {rule} is for; look for a seed with a wider range"
    World(setting, Rules()).run(Random(found[0]), 150)
