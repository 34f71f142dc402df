"""The fixtures that users get, in a session of pytest as theirs."""

import pytest

pytest_plugins = ["pytester"]

TESTS = """
    import penstock

    class Numbers:
        splits = ("all",)

    def test_a_flow(penstock_run):
        flow = penstock.Flow("doubles")
        flow.source(Numbers(), name="numbers").map(lambda item: 2 * item).sink(print)
        assert penstock_run(flow, {"numbers": [1, 2]})["print"] == [2, 4]

    def test_a_collector(penstock_collector):
        assert penstock_collector.items() == []

    def test_a_broker(penstock_kafka):
        penstock_kafka.create_topic("made")
"""


def test_they_are_there_without_any_set_up(pytester: pytest.Pytester, broker: object) -> None:
    """After the common broker, so that a machine that has none skips."""
    pytester.makepyfile(TESTS)
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=3)
