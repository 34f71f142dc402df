"""What is drawn: curves of policies that entered several times, and points that would cover each other."""

from penstock.arena.pictures import curves
from penstock.arena.score import Standing


def stands(policy: str, cost: float | None, held: float | None) -> Standing:
    return Standing(
        workload="w",
        policy=policy,
        bouts=1,
        held=held,
        cost=cost,
        cpu=None,
        changes=0.0,
        overshoot=None,
        longest_broken_s=0.0,
    )


def test_one_policy_with_several_settings_is_a_curve() -> None:
    found = curves([stands("penstock share=0.9", 1.2, 0.9), stands("penstock share=0.99", 1.4, 0.98)])
    assert found == {"penstock": [(1.2, 90.0, "share=0.9"), (1.4, 98.0, "share=0.99")]}


def test_who_would_cover_another_shares_its_place() -> None:
    found = curves([stands("static", 1.0, 0.5), stands("mape", 1.0, 0.5), stands("dhalion", 1.001, 0.5)])
    assert found == {"static, mape, dhalion": [(1.0, 50.0, "")]}


def test_what_has_no_figures_is_not_drawn() -> None:
    assert curves([stands("static", None, 0.5), stands("mape", 1.0, None)]) == {}
