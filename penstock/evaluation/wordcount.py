"""Word count under ds2 and dhalion: steps and final configuration (DS2, section 5.2 and figure 6)."""

from collections.abc import Callable
from pathlib import Path

from penstock.apps.wordcount import flow
from penstock.evaluation.panels import Line, Panel, draw
from penstock.evaluation.part import Part, Picture, Runs, Table, percent
from penstock.evaluation.series import changes, part_of, replicas, within
from penstock.evaluation.trial import Trial, controlled
from penstock.flow import Flow
from penstock.report.metrics import figures_of

SECONDS = {"ds2": 60.0, "dhalion": 100.0}
PAPER = {
    "ds2": ("1", "10 and 20", "60 s"),
    "dhalion": ("6", "22 and 30", "2,000 s"),
}
TASKS = ("splitter", "counter")
# How the last part of a run kept its bound.
LAST_S = 20.0


def trials() -> list[Trial]:
    """Both begin with one replica of each."""
    return [
        controlled(f"wordcount-{policy}", seconds, _counting(seconds), policy)
        for policy, seconds in SECONDS.items()
    ]


def _counting(seconds: float) -> Callable[[Path], Flow]:
    return lambda _: flow(seconds=seconds)


def part(runs: Runs) -> Part:
    """What each policy did, step by step."""
    rows, steps = [], []
    for policy in SECONDS:
        history = runs[f"wordcount-{policy}"]
        taken = changes(history, *TASKS)
        last = part_of(history, within(history, history.ends_s[-1] - LAST_S))
        kept = next(iter(figures_of(last).kept.values()))
        paper = PAPER[policy]
        rows.append(
            (
                policy,
                str(len(taken) - 1),
                paper[0],
                " and ".join(map(str, taken[-1][1])),
                paper[1],
                f"{taken[-1][0]:.0f} s",
                paper[2],
                percent(kept.share_held),
            )
        )
        steps.append((policy, ", ".join(f"{s}/{c} at {at_s:.0f} s" for at_s, (s, c) in taken)))
    return Part(
        title="Word count: ds2 and dhalion",
        about="100 sentences/s of 20 words from one splitter and one counter on; 10 and 20 are just enough.",
        tables=[
            Table(
                (
                    "policy",
                    "steps",
                    "DS2 paper",
                    "final splitters and counters",
                    "DS2 paper",
                    "reached after",
                    "DS2 paper",
                    f"intervals within 500 ms, last {LAST_S:g} s",
                ),
                rows,
            ),
            Table(("policy", "splitters/counters"), steps),
        ],
        differs="Heron has 167 times the rate (a million sentences a minute), and Dhalion there evaluates"
        " every 60 s and rests for 180 s; here 4 s and 12 s, and queues of some hundred KiB instead of"
        " 100 MiB.",
        pictures=[
            Picture(
                "evaluation_wordcount",
                "Replicas of word count under ds2 and dhalion",
                lambda: draw([_panel(runs, task) for task in TASKS]),
            )
        ],
    )


def _panel(runs: Runs, task: str) -> Panel:
    histories = {policy: runs[f"wordcount-{policy}"] for policy in SECONDS}
    lines = [Line(policy, history, replicas(history, task)) for policy, history in histories.items()]
    return Panel(f"{task}\nreplicas", lines, whole=True)
