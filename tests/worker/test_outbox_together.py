"""What an outbox keeps for a moment, so that it travels together."""

from tests.worker.test_outbox import make, put_all


def test_what_is_held_is_shipped_together_whatever_becomes_of_the_lifetime() -> None:
    outbox, stream, bridge = make(pool=1)
    outbox.holds = True
    put_all(stream, range(3))
    assert bridge.items(0) == []
    stream.lifetime_ns = 10**9  # an order came
    outbox.release()
    stream.lifetime_ns = 0
    stream.put(3)
    assert [envelope.items for envelope in bridge.envelopes[0]] == [[0, 1, 2], [3]]


def test_what_is_held_is_shipped_before_it_is_too_large() -> None:
    outbox, stream, bridge = make(pool=1, batch_bytes=100)
    outbox.holds = True
    put_all(stream, [bytes([number]) * 50 for number in range(70)])
    outbox.release()
    assert [len(envelope.items) for envelope in bridge.envelopes[0]][:2] == [64, 1]


def test_what_is_there_together_shares_an_envelope_where_receivers_are_behind() -> None:
    outbox, stream, bridge = make(pool=2)
    outbox.joins = True
    put_all(stream, range(2))
    outbox.gather()
    put_all(stream, range(2, 6))
    assert bridge.items(0) == [0]
    outbox.let_go()
    put_all(stream, range(6, 8))
    outbox.release()
    put_all(stream, range(8, 12))
    evens = [envelope.items for envelope in bridge.envelopes[0]]
    assert evens == [[0], [2, 4], [6], [8], [10]]
    assert bridge.items(1) == [*range(1, 12, 2)]


def test_what_is_held_is_not_acknowledged() -> None:
    outbox, stream, bridge = make(pool=1)
    outbox.joins = True
    outbox.gather()
    for number in (1, 2, 3):
        outbox.current_input = number
        if number > 1:
            stream.put(number)
        outbox.finish_input(number)
        assert outbox.done_input() == 1
    outbox.let_go()
    assert outbox.done_input() == 3
    assert bridge.items(0) == [2, 3]


def test_where_receivers_keep_up_each_has_an_envelope_of_its_own() -> None:
    outbox, stream, bridge = make(pool=1)
    outbox.gather()
    put_all(stream, range(3))
    outbox.release()
    assert [envelope.items for envelope in bridge.envelopes[0]] == [[0], [1], [2]]


def test_what_has_reached_its_lifetime_goes_whatever_the_task_is_at() -> None:
    outbox, stream, bridge = make(pool=1, lifetime_ms=5.0, gathers=True)
    outbox.frames.gather()
    stream.put("item")
    outbox.ship_due(stream.deadline_ns)
    assert bridge.items(0) == ["item"]
