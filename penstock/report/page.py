"""The page of a report: one HTML file with everything in it, readable in the light and in the dark."""

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path

from penstock.policy.decision import Decision, Reason
from penstock.report.decision_marks import marks
from penstock.report.history import History
from penstock.report.metrics import Figures, Kept, figures_of

STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #ffffff; --line: #d0d0d0; --soft: #666666; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --paper: #16181b; --line: #3c4046; --soft: #a0a0a0; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 1200px;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
p.about { color: var(--soft); }
table { border-collapse: collapse; margin: 0.6rem 0; font-size: 0.92rem; }
th, td { border-bottom: 1px solid var(--line); padding: 0.25rem 0.9rem 0.25rem 0;
  text-align: left; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
img { max-width: 100%; height: auto; background: #ffffff; border-radius: 4px; }
details { margin: 0.4rem 0; } summary { cursor: pointer; }
ul { margin: 0; padding-left: 1.1rem; }
""".strip()


def page(histories: Sequence[History], pictures: Mapping[str, tuple[str, str, Path]]) -> str:
    """The page; `pictures` are heading, explanation and file of each picture by name."""
    title = " and ".join(history.name for history in histories)
    parts = [
        f"<h1>{escape(title)}</h1>",
        *(_intro(history) for history in histories),
        "<h2>Figures</h2>",
        _figures_table(histories),
    ]
    for name, (heading, about, path) in pictures.items():
        source = b64encode(path.read_bytes()).decode()
        parts.append(f'<h2 id="{escape(name)}">{escape(heading)}</h2><p class="about">{escape(about)}</p>')
        parts.append(f'<img alt="{escape(heading)}" src="data:image/png;base64,{source}">')
    parts += [_decisions(history) for history in histories if history.entries]
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
        f"<style>\n{STYLE}\n</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def _intro(history: History) -> str:
    decided = "nobody decided" if history.policy is None else f"policy {history.policy}"
    return (
        f"<p><b>{escape(history.name)}</b>: {len(history.snapshots)} intervals, {history.ends_s[-1]:,.0f} s,"
        f" {escape(decided)}</p>"
    )


def _figures_table(histories: Sequence[History]) -> str:
    """A row for each figure, a column for each recording."""
    figures = [figures_of(history) for history in histories]
    rows: list[tuple[str, Callable[[Figures], str]]] = []
    for name in dict.fromkeys(name for found in figures for name in found.kept):
        rows += _constraint_rows(name)
    for name in dict.fromkeys(name for found in figures for name in found.task_hours):
        rows.append((f"task-hours of {name}", _task_hours(name)))
    rows += [
        ("changes of replicas", lambda found: str(found.changes)),
        ("worker CPU", lambda found: _share(found.worker_cpu)),
        ("busy cores", lambda found: _number(found.cores_used, 2)),
        ("saved nodes", lambda found: _number(found.saved_nodes, 3)),
        ("throughput degradation", lambda found: _number(found.throughput_degradation, 4)),
        ("processed of received events", lambda found: _share(found.processed_share)),
    ]
    head = "".join(f"<th>{escape(history.name)}</th>" for history in histories)
    lines = [
        f"<tr><td>{escape(label)}</td>"
        + "".join(f'<td class="number">{escape(value(found))}</td>' for found in figures)
        + "</tr>"
        for label, value in rows
    ]
    return f'<table id="figures"><tr><th></th>{head}</tr>{"".join(lines)}</table>'


def _task_hours(name: str) -> Callable[[Figures], str]:
    return lambda found: _number(found.task_hours.get(name), 4)


def _constraint_rows(name: str) -> list[tuple[str, Callable[[Figures], str]]]:
    def of(value: Callable[[Kept], str]) -> Callable[[Figures], str]:
        return lambda found: value(found.kept[name]) if name in found.kept else "–"

    return [
        (f"{name}: bound", of(lambda kept: f"{kept.statistic} {kept.bound_ms:g} ms")),
        (f"{name}: intervals held", of(lambda kept: _share(kept.share_held))),
        (f"{name}: mean latency", of(lambda kept: _ms(kept.mean_ms))),
        (f"{name}: 95th percentile", of(lambda kept: _ms(kept.p95_ms))),
        (f"{name}: time violated", of(lambda kept: f"{kept.violated_s:,.0f} s")),
    ]


def _decisions(history: History) -> str:
    """The decisions that changed or refused something, with all their reasons; the others folded away."""
    said: dict[float, list[str]] = {}
    for mark in marks(history):
        said.setdefault(mark.at_s, []).append(mark.text)
    times = dict(enumerate(history.ends_s))
    loud: list[str] = []
    quiet: list[str] = []
    for entry in history.entries:
        at_s = times.get(entry.number)
        if at_s is None:
            continue
        changed = said.get(at_s, [])
        cells = (f"{at_s:,.0f} s", _list(changed), _list(_reasons(entry.decision)))
        line = f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        (loud if changed else quiet).append(line)
    head = "<tr><th>time</th><th>what</th><th>why</th></tr>"
    name = escape(history.name)
    return (
        f"<h2>Decisions of {name}, with reasons</h2>"
        f"<details open><summary>{len(loud)} that changed or refused something</summary>"
        f"<table>{head}{''.join(loud)}</table></details>"
        f"<details><summary>{len(quiet)} that left everything as it was, or nearly</summary>"
        f"<table>{head}{''.join(quiet)}</table></details>"
    )


def _reasons(decision: Decision) -> list[str]:
    return [
        *(_reason(reason) for reason in decision.reasons),
        *(f"held back by {refusal.guard}: {refusal.why}" for refusal in decision.refused),
    ]


def _reason(reason: Reason) -> str:
    return f"{reason.rule}: {reason.why}"


def _list(lines: Sequence[str]) -> str:
    return "" if not lines else f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{value:,.2f} ms"


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"
