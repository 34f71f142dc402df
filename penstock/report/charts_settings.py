"""What was set while a run went on: batch lifetimes, chains, and the decisions themselves."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from penstock.report.colours import colour
from penstock.report.decision_marks import MARKS, marks
from penstock.report.grid import ROW_IN, grid, steps, union
from penstock.report.history import History


def lifetimes(histories: Sequence[History]) -> Figure | None:
    """How long each stream gathers items before they are shipped."""
    if not any(s.batch_lifetime_ms for h in histories for snapshot in h.snapshots for s in snapshot.streams):
        return None

    def row(axes: Axes, history: History, _: str) -> None:
        for number, stream in enumerate(history.snapshots[-1].streams):
            values = [snapshot.stream(stream.name).batch_lifetime_ms for snapshot in history.snapshots]
            style = ("-", "--", ":")[number // 8 % 3]
            steps(axes, history, values, label=stream.name, color=colour(number), linestyle=style)
        axes.set_ylabel("batch lifetime [ms]")

    return grid(histories, ["lifetimes"], row, from_zero=True, same_scale=True)


def chains(histories: Sequence[History]) -> Figure | None:
    """Tasks that run in one process: joined tasks have the same colour and lie next to each other."""
    if not any(len(chain) > 1 for h in histories for snapshot in h.snapshots for chain in snapshot.chains):
        return None

    def row(axes: Axes, history: History, _: str) -> None:
        order = [n for n in history.snapshots[-1].topological_order() if _in_a_chain(history, n)]
        for snapshot, begin_s in zip(history.snapshots, history.begins_s, strict=True):
            for chain in snapshot.chains:
                known = [order.index(name) for name in chain if name in order]
                if not known:
                    continue
                # One bar over all rows of a chain, so that what is joined looks joined.
                height = max(known) - min(known) + 0.7
                face = colour(0) if len(chain) > 1 else "#CCCCCC"
                axes.bar(
                    begin_s,
                    height,
                    width=snapshot.interval_s,
                    bottom=min(known) - 0.35,
                    align="edge",
                    color=face,
                )
        axes.set_yticks(range(len(order)), order)
        axes.invert_yaxis()
        for shade, label in ((colour(0), "one process"), ("#CCCCCC", "a process of its own")):
            axes.bar(0, 0, color=shade, label=label)

    return grid(histories, ["chains"], row)


def decisions(histories: Sequence[History]) -> Figure | None:
    """What was decided when; the table below the picture says why."""
    if not any(history.entries for history in histories):
        return None

    def row(axes: Axes, history: History, _: str) -> None:
        found = marks(history)
        subjects = union(mark.subject for mark in found) or ["nothing was changed"]
        for kind, look in MARKS.items():
            chosen = [mark for mark in found if mark.kind == kind]
            if chosen:
                rows = [subjects.index(mark.subject) for mark in chosen]
                times_s = [mark.at_s for mark in chosen]
                axes.scatter(
                    times_s,
                    rows,
                    marker=look.marker,
                    color=look.colour,
                    s=36,
                    label=look.label,
                    zorder=3,
                    clip_on=False,
                )
        axes.set_yticks(range(len(subjects)), subjects)
        axes.set_ylim(len(subjects) - 0.4, -0.6)

    rows = max(len(union(mark.subject for mark in marks(history))) for history in histories)
    return grid(histories, ["decisions"], row, row_in=max(ROW_IN, 0.28 * rows + 1.0))


def _in_a_chain(history: History, name: str) -> bool:
    return any(name in chain for snapshot in history.snapshots for chain in snapshot.chains)
