"""How flows are controlled in bench `control`: live settings, and a short interval, in every experiment."""

from penstock.control.control_plan import ControlPlan

INTERVAL_S = 2.0
POLICIES = ("nephele", "static", "penstock", "ds2", "mape", "threshold")


def control_plan(policy: str, *more: str) -> ControlPlan:
    """The plan of an experiment; `more` switches a part of a policy off for comparison."""
    return ControlPlan(policy, more, INTERVAL_S)
