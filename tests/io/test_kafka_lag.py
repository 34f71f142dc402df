"""How far a reader of a partition is behind, without a broker."""

from typing import Any

import pytest

from penstock.io.kafka_lag import PartitionEnd


class Consumer:
    """Knows the end that the last fetch told, and where the partition really ends."""

    def __init__(self) -> None:
        self.told, self.real = -1001, 0
        self.asked = 0
        self.refuses = False

    def get_watermark_offsets(
        self, place: Any, timeout: float = 0.0, cached: bool = False
    ) -> tuple[int, int] | None:
        if cached:
            return 0, self.told
        assert 0 < timeout <= 0.2, "reading waits for it"
        self.asked += 1
        return None if self.refuses else (0, self.real)


@pytest.fixture
def now_s() -> list[float]:
    return [0.0]


@pytest.fixture
def consumer() -> Consumer:
    return Consumer()


@pytest.fixture
def end(consumer: Consumer, now_s: list[float]) -> PartitionEnd:
    return PartitionEnd(consumer, None, lambda: now_s[0])


def test_it_is_not_known_before_the_first_fetch(end: PartitionEnd, now_s: list[float]) -> None:
    assert end.lag_items(0) is None
    now_s[0] = 60.0
    assert end.lag_items(0) is None


def test_who_has_read_all_does_not_ask(end: PartitionEnd, consumer: Consumer, now_s: list[float]) -> None:
    consumer.told = 100
    assert [end.lag_items(offset) for offset in (90, 100)] == [10, 0]
    now_s[0] = 60.0
    assert end.lag_items(100) == 0
    assert consumer.asked == 0


def test_who_is_behind_asks_once_a_second(end: PartitionEnd, consumer: Consumer, now_s: list[float]) -> None:
    consumer.told, consumer.real = 100, 100
    assert end.lag_items(10) == 90
    for second in range(1, 4):
        now_s[0], consumer.real = float(second), 100 + 1000 * second
        assert end.lag_items(10) == 90 + 1000 * second
        assert end.lag_items(20) == 80 + 1000 * second
    assert consumer.asked == 3
    consumer.told = 3200  # a fetch: newer than what was asked for
    now_s[0] = 4.0
    assert end.lag_items(20) == 3180
    assert consumer.asked == 3


def test_a_broker_that_does_not_answer_is_left_alone(
    end: PartitionEnd, consumer: Consumer, now_s: list[float]
) -> None:
    consumer.told, consumer.refuses = 100, True
    end.lag_items(10)
    for second in range(1, 11):
        now_s[0] = float(second)
        assert end.lag_items(10) == 90
    assert consumer.asked == 1
    now_s[0] = 11.0
    end.lag_items(10)
    assert consumer.asked == 2
