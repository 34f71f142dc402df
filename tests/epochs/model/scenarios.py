"""Flows for the properties, small ones on which a missing rule shows soon, and the search for such a run."""

from random import Random

from tests.epochs.model.check import ViolationError
from tests.epochs.model.graph import Graph, Stream, Task
from tests.epochs.model.rules import Rules
from tests.epochs.model.world import Setting, World


def direct(items: int = 6, replicas: int = 2) -> Graph:
    """Two sources into state, and its counts into a transactional sink."""
    return Graph(
        (
            Task("s", "source", 1),
            Task("u", "source", 1),
            Task("k", "keyed", replicas),
            Task("t", "transactional", 1),
        ),
        (Stream("s", "k", "key"), Stream("u", "k", "key"), Stream("k", "t")),
        items,
    )


def through_map(items: int = 6) -> Graph:
    """Two splits, a task without state whose replicas come and go, then state."""
    return Graph(
        (Task("s", "source", 2), Task("r", "map", 2), Task("k", "keyed", 1)),
        (Stream("s", "r"), Stream("r", "k", "key")),
        items,
    )


def diamond(items: int = 6) -> Graph:
    """State is reached by a task and past it, by a relay that carries both sources."""
    return Graph(
        (
            Task("s", "source", 1),
            Task("u", "source", 1),
            Task("r", "map", 2),
            Task("k", "keyed", 2),
            Task("t", "transactional", 2),
            Task("p", "plain", 1),
        ),
        (
            Stream("s", "r"),
            Stream("u", "r"),
            Stream("r", "k", "key"),
            Stream("s", "k", "key", relayed=True),
            Stream("u", "k", "key", relayed=True),
            Stream("k", "t"),
            Stream("u", "p"),
        ),
        items,
    )


def forward_unit(items: int = 6) -> Graph:
    """Tasks of a unit, one to one, between two shuffles."""
    return Graph(
        (
            Task("s", "source", 2),
            Task("r", "map", 2),
            Task("f", "map", 2),
            Task("k", "keyed", 2),
            Task("j", "keyed", 2),
            Task("t", "transactional", 1),
        ),
        (
            Stream("s", "r"),
            Stream("r", "f", "forward"),
            Stream("f", "k", "key"),
            Stream("k", "j", "key"),
            Stream("j", "t"),
        ),
        items,
    )


def keyed_unit(items: int = 6) -> Graph:
    """State behind state in one unit, by the same keys."""
    return Graph(
        (
            Task("s", "source", 2),
            Task("k", "keyed", 2),
            Task("f", "keyed", 2),
            Task("t", "transactional", 1),
        ),
        (Stream("s", "k", "key"), Stream("k", "f", "forward"), Stream("f", "t")),
        items,
    )


def spread(items: int = 6, width: int = 2) -> Graph:
    """State that makes two of each item and sends them to all replicas of its sink."""
    return Graph(
        (Task("s", "source", 1), Task("k", "keyed", 2), Task("t", "transactional", width)),
        (Stream("s", "k", "key"), Stream("k", "t", "broadcast", puts=2)),
        items,
    )


def plain(items: int = 6) -> Graph:
    """Nothing that is exact."""
    return Graph(
        (Task("s", "source", 2), Task("r", "map", 2), Task("p", "plain", 2)),
        (Stream("s", "r"), Stream("r", "p")),
        items,
    )


def broken(setting: Setting, rules: Rules, seeds: range, steps: int = 150) -> tuple[int, str] | None:
    """The first of these runs that violates a property, and in which words."""
    for seed in seeds:
        try:
            World(setting, rules).run(Random(seed), steps)
        except ViolationError as problem:
            return seed, str(problem)
    return None


WITHOUT: dict[str, tuple[Setting, int]] = {
    "upstream_aligns": (Setting(through_map()), 1),
    "whole_pool": (Setting(through_map(), faults=("activate", "retire"), fault_rate=0.3, slow="r works"), 30),
    "align_before_ledger": (Setting(plain(), faults=("kill",), fault_rate=0.05), 1),
    "reading_never_stops": (Setting(diamond()), 3),
    "full_is_invalid": (Setting(direct(), limit=0), 0),
    "moves_never_pass": (Setting(direct(), limit=0, faults=("rescale",), fault_rate=0.1), 3),
    "moves_until_committed": (
        Setting(direct(), limit=0, faults=("rescale", "lose", "void"), fault_rate=0.3),
        4,
    ),
    "order_names_moved": (
        Setting(direct(8), faults=("rescale", "lose", "lose"), fault_rate=0.25, slow="load"),
        13,
    ),
    "waiting_never_passes": (
        Setting(direct(16), limit=0, faults=("rescale",), fault_rate=0.1, slow="load"),
        2,
    ),
    "mark_closes_smaller": (Setting(direct(), faults=("lose",), fault_rate=0.1), 1),
    "idle_answers": (Setting(through_map()), 0),
    "dry_answers": (Setting(direct()), 0),
    "one_frame": (Setting(direct()), 4),
    "order_kept_until_answered": (Setting(plain(), faults=("kill",), fault_rate=0.05), 3),
    "reports_are_cumulative": (Setting(direct(), faults=("void",), fault_rate=0.1), 0),
    "quiet_after_voids": (Setting(direct(30), limit=0, slow="k"), 0),
    "attempt_in_reports": (Setting(direct(), faults=("crash", "late", "late"), fault_rate=0.15), 5),
    "attempt_in_envelopes": (Setting(direct(), faults=("kill",)), 0),
    "exact_death_rolls_back": (Setting(direct(), faults=("kill",)), 0),
    "start_drops_memory": (Setting(direct(), faults=("kill",)), 0),
    "append_before_commit": (Setting(direct(), faults=("crash",), fault_rate=0.05), 32),
    "alive_until_commit": (Setting(direct()), 1),
    "handles_until_answered": (Setting(direct(), faults=("crash",), fault_rate=0.01, slow="commit"), 9),
    "retires_prepared": (Setting(direct(), faults=("retire",), fault_rate=0.3), 0),
    "commit_again_at_start": (Setting(direct(), faults=("crash",), fault_rate=0.05), 34),
    "abort_at_start": (Setting(direct(), faults=("crash",), fault_rate=0.05), 37),
    "commit_is_idempotent": (Setting(direct(), faults=("crash",), fault_rate=0.05), 0),
    "fence": (Setting(direct(), faults=("crash", "wake"), fault_rate=0.05), 2),
    "rollback_is_in_the_log": (Setting(direct(16), faults=("kill", "crash"), fault_rate=0.01, slow="t"), 0),
    "one_log": (Setting(direct(), faults=("kill",)), 0),
    "table_in_mark": (Setting(direct(), faults=("rescale",), fault_rate=0.05), 3),
    "moved_are_held": (Setting(direct(), faults=("rescale",), fault_rate=0.05), 3),
    "next_mark_waits": (Setting(direct(), faults=("rescale",), fault_rate=0.05, slow="load"), 3),
    "log_before_hand_over": (Setting(direct(), faults=("rescale",), fault_rate=0.05), 0),
    "chain_takes_changed": (Setting(keyed_unit(), faults=("chain",), fault_rate=0.2), 2),
    "head_waits_for_all": (
        Setting(keyed_unit(), faults=("chain", "chain", "rescale"), fault_rate=0.2, slow="load"),
        9,
    ),
    "ids_know_no_replica": (Setting(direct()), 0),
    "ids_count_puts": (Setting(spread()), 0),
    "event_time_is_frozen": (Setting(direct(), faults=("rescale",), fault_rate=0.05, slow="load"), 3),
}
"""For each rule a setting, and the seed of a run that breaks without it."""
