"""What changes take and cost, as seen."""

from penstock.policy.penstock.price import Prices


def test_the_delay_is_what_an_order_took() -> None:
    prices = Prices().ordered({"a": 4, "b": 1}, {"a": 2, "b": 1}, {})
    prices = prices.looked({"a": 2}, 5.0, 0.0).looked({"a": 2}, 5.0, 0.0).looked({"a": 4}, 5.0, 0.0)
    assert prices.order is None
    assert prices.delay_s == 10.0
    assert prices.ahead(5.0) == 3
    assert Prices().ahead(5.0) == 1


def test_an_order_that_never_comes_is_given_up() -> None:
    prices = Prices().ordered({"a": 4, "b": 1}, {"a": 2, "b": 1}, {})
    for _ in range(18):
        prices = prices.looked({"a": 2}, 5.0, 0.0)
    assert prices.order is None
    assert prices.delay_s is None


def test_less_than_was_ordered_is_taken_as_it_is() -> None:
    prices = Prices(delay_s=0.0).ordered({"a": 9}, {"a": 2}, {})
    assert prices.looked({"a": 5}, 5.0, 0.0).order is None
    for _ in range(4):
        prices = prices.looked({"a": 2}, 5.0, 0.0)
    assert prices.order is None, "what takes no time and has not come in four intervals was refused"


def test_a_pause_is_the_sum_of_what_stood_still_in_a_row() -> None:
    prices = Prices().ordered({"a": 4, "b": 1}, {"a": 2, "b": 1}, {})
    for still_s in (5.0, 5.0, 2.0):
        prices = prices.looked({"a": 4}, 5.0, still_s)
    assert prices.pause_s == prices.still_s == 12.0
    prices = prices.looked({"a": 4}, 5.0, 0.0)
    assert (prices.pause_s, prices.still_s) == (0.0, 12.0)
    assert not prices.are_cheap(5.0)
    assert not prices.may_save(0.99)
    assert prices.may_save(0.3)


def test_standing_still_long_after_a_change_is_not_its_price() -> None:
    prices = Prices(since_change_s=1_000.0).looked({"a": 4}, 5.0, 5.0)
    assert prices.still_s == 0.0


def test_fewer_is_the_most_that_was_enough_lately() -> None:
    prices = Prices()
    for count in (9, 3, 4, 3, 3):
        assert prices.fewest("a", 5.0, {}) is None or count == 3
        prices = prices.wished({"a": count})
    assert prices.fewest("a", 5.0, {}) == 4


def test_what_savings_break_is_their_price_and_is_forgiven() -> None:
    prices = Prices(since_change_s=100.0).saved(5.0)
    assert prices.cost_s == 2.5
    assert not prices.may_save(0.99)
    assert prices.may_save(0.9)
    assert prices.saved(0.0).saved(0.0).may_save(0.99)


def test_a_saving_that_is_undone_takes_more_evidence_the_next_time() -> None:
    saved = Prices().ordered({"a": 3}, {"a": 4}, {"source": 100.0})
    undone = saved.ordered({"a": 4}, {"a": 3}, {"source": 105.0})
    assert undone.patience == 2
    for _ in range(6):
        undone = undone.wished({"a": 3})
    assert undone.fewest("a", 5.0, {}) is None
    assert undone.wished({"a": 3}).fewest("a", 5.0, {}) == 3
    again = undone.ordered({"a": 3}, {"a": 4}, {"source": 100.0})
    assert again.ordered({"a": 4}, {"a": 3}, {"source": 100.0}).patience == 4
    assert again.ordered({"a": 6}, {"a": 3}, {"source": 150.0}).patience == 1, "the load is another"


def test_an_order_lasts_until_the_next_one_can_be_there() -> None:
    assert [Prices(delay_s=delay).until_next(5.0) for delay in (None, 0.0, 5.0, 25.0)] == [1, 1, 3, 11]


def test_what_saves_hardly_anything_is_not_worth_a_change() -> None:
    assert not Prices().is_worth(1, 20)
    assert Prices().is_worth(1, 3)
    assert Prices().is_worth(2, 20)


def test_where_the_load_is_the_same_a_saving_takes_more_evidence() -> None:
    prices = Prices().ordered({"a": 5}, {"a": 4}, {"source": 100.0})
    for _ in range(30):
        prices = prices.looked({"a": 5}, 5.0, 0.0)
    for _ in range(6):
        prices = prices.wished({"a": 3})
    assert prices.fewest("a", 5.0, {"source": 100.0}) is None
    assert prices.fewest("a", 5.0, {"source": 50.0}) == 3, "the load has fallen"
    for _ in range(24):
        prices = prices.wished({"a": 3})
    assert prices.fewest("a", 5.0, {"source": 100.0}) == 3


def test_after_a_backlog_fewer_are_enough_for_the_same_load() -> None:
    prices = Prices(intervals=30).ordered({"a": 9}, {"a": 4}, {"source": 100.0}, drains=True)
    for _ in range(5):
        prices = prices.wished({"a": 3})
    assert prices.fewest("a", 5.0, {"source": 100.0}) == 3


def test_fewer_tell_nothing_of_the_time_that_replicas_take() -> None:
    prices = Prices().ordered({"a": 2}, {"a": 4}, {})
    for _ in range(3):
        prices = prices.looked({"a": 4}, 5.0, 0.0)
    prices = prices.looked({"a": 2}, 5.0, 0.0)
    assert prices.order is None
    assert prices.delay_s is None
