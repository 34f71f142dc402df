"""A decision, its policy and its parameters in words."""

import sys
from collections.abc import Mapping
from textwrap import indent
from typing import Any

import msgspec

from penstock.policy.decision import Decision, Evidence, Reason, Refusal
from penstock.policy.parameters import Parameter, describe
from penstock.policy.port import Policy
from penstock.stats.snapshot import Snapshot


def explain_decision(snapshot: Snapshot, decision: Decision) -> str:
    """What changes, for which reasons, and what was held back."""
    changed = [
        f"{task}: {snapshot.tasks[task].parallelism} -> {count} replicas"
        for task, count in decision.parallelism.items()
        if count != snapshot.tasks[task].parallelism
    ]
    changed += [
        f"{task}: keys divided anew, in {len(spans)} spans of groups"
        for task, spans in decision.key_tables.items()
    ]
    changed += [f"{stream}: batch lifetime {ms:.6g} ms" for stream, ms in decision.batch_lifetime_ms.items()]
    if decision.chains != snapshot.chains:
        changed.append("chains: " + ", ".join("+".join(chain) for chain in decision.chains))
    lines = [
        f"Decision over {snapshot.interval_s:g} s"
        + ("" if decision.feasible else ", which cannot be enough"),
        *_listed("changes", changed or ["nothing"]),
        *_listed("because", [text for reason in decision.reasons for text in _reason(reason)]),
    ]
    if decision.refused:
        lines += _listed("held back", [_refusal(refusal) for refusal in decision.refused])
    return "\n".join(lines)


def explain_policy(policy: Policy[Any]) -> str:
    """The formula and where it comes from: what stands above the code of the policy."""
    about = (sys.modules[type(policy).__module__].__doc__ or "").strip()
    return f"Policy {policy.name}\n{indent(about, '  ')}"


def explain_parameters(groups: Mapping[str, msgspec.Struct]) -> str:
    """Every parameter with its value, its unit, its meaning, and its default where that was changed."""
    lines = ["Parameters"]
    for group, values in groups.items():
        described = describe(group, type(values))
        if not described:
            lines.append(f"  {group} has none")
        for parameter in described:
            lines += _parameter(parameter, getattr(values, parameter.name.partition(".")[2]))
    return "\n".join(lines)


def _parameter(parameter: Parameter, value: Any) -> list[str]:
    unit = f" {parameter.unit}" if parameter.unit and value is not None else ""
    origin = "default" if value == parameter.default else f"set; the default is {_shown(parameter.default)}"
    return [f"  {parameter.name} = {_shown(value)}{unit} ({origin})", f"      {parameter.meaning}"]


def _reason(reason: Reason) -> list[str]:
    about = [name for name in (reason.constraint, reason.task, reason.stream) if name is not None]
    subject = f" ({', '.join(about)})" if about else ""
    lines = [f"{reason.rule}{subject}: {reason.why}"]
    if reason.inputs:
        lines.append(f"    from {_evidence(reason.inputs)}")
    if reason.prediction:
        lines.append(f"    expecting {_evidence(reason.prediction)}")
    return lines


def _refusal(refusal: Refusal) -> str:
    subject = refusal.task or refusal.stream
    wanted = "" if refusal.after is None else f" {refusal.before} -> {refusal.after}"
    return f"{refusal.guard}{f' ({subject}{wanted})' if subject else ''}: {refusal.why}"


def _evidence(evidence: Evidence) -> str:
    return ", ".join(f"{name} {_number(value)}" for name, value in evidence.items())


def _number(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else "unknown" if value is None else str(value)


def _shown(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _listed(title: str, entries: list[str]) -> list[str]:
    return [f"  {title}", *(f"    {entry}" for entry in entries)]
