"""The plan in words."""

import functools

from hypothesis import given

from penstock.flow import Flow, elastic, spark_conf
from penstock.flow.commits import commits_in_words
from penstock.flow.layers import lay_out, max_slots
from penstock.flow.stateful import UNDECLARED
from tests.flow.random_flows import Partitioned, Splitter, alone, flows, ignore


class Deduplicating:
    by_id = True

    def write(self, item: object) -> None: ...


def test_in_full() -> None:
    flow = Flow("primes", ids=True)
    numbers = flow.source(Partitioned(2), name="numbers")
    tested = numbers.map(ignore, name="test", parallelism=elastic(1, 16, initial=4), on_error="skip")
    split = tested.by_key(functools.partial(hash)).batched("20 ms").task(Splitter, latency_kind="read_write")
    flow.sink(Deduplicating, split, numbers.coded("bytes"), name="k")
    numbers.forward().filter(lambda item: item).forward().sink(print)
    flow.constrain("20 ms", ["numbers->test", "test", "test->Splitter"])
    assert flow.explain().splitlines() == [
        'flow "primes": items with ids',
        "",
        "layers",
        "  layer 0: 2 partitions",
        "    partitions 0 to 1: pool of 2, 2 active at the start",
        "      numbers: source; parallelism 2",
        "      filter_1 (default name): filter; parallelism 2 (default); on_error fail (default);"
        " latency_kind read_ready (default)",
        "      print (default name): sink; parallelism 2 (default); on_error fail (default)",
        "  layer 1: 9 partitions",
        "    partitions 0 to 7: pool of 8, 4 active at the start",
        "      test: map; parallelism elastic(1, 16, initial=4, pool=8 (default)); on_error skip;"
        " latency_kind read_ready (default)",
        "    partition 8: relay for numbers->k",
        "  layer 2: 2 partitions",
        "    partition 0: pool of 1, 1 active at the start",
        "      Splitter (default name): task; parallelism 1 (default); on_error fail (default);"
        " latency_kind read_write; outputs hits, late",
        '        nothing reads output "late": its items are dropped',
        "    partition 1: relay for numbers->k",
        "  layer 3: 1 partition",
        "    partition 0: pool of 1, 1 active at the start",
        "      k: sink; parallelism 1 (default); on_error fail (default)",
        "",
        "streams",
        "  numbers->test: round_robin (default); codec pickle (default); batch lifetime 0 ms (default);"
        " at most 65536 bytes (default)",
        "  numbers->k: key: item id; codec bytes; batch lifetime 0 ms (default);"
        " at most 65536 bytes (default)",
        "  numbers->filter_1: forward; codec pickle (default); batch lifetime 0 ms (default);"
        " at most 65536 bytes (default); stays in its partition",
        "  test->Splitter: key: hash; codec pickle (default); batch lifetime 20 ms;"
        " at most 65536 bytes (default)",
        "  Splitter->k: key: item id; codec pickle (default); batch lifetime 0 ms (default);"
        " at most 65536 bytes (default)",
        "  filter_1->print: forward; codec pickle (default); batch lifetime 0 ms (default);"
        " at most 65536 bytes (default); stays in its partition",
        "",
        "constraints",
        "  kept by policy penstock (default)",
        "  c1 (default name): mean (default) of at most 20 ms in any 5 s (default)"
        " over numbers->test, test, test->Splitter",
        "",
        "commits",
        *(f"  {line}" for line in commits_in_words(flow.graph())),
        "",
        "state",
        f"  {UNDECLARED}",
        "",
        "output",
        '  sink "k" is given every item at least once, and can tell by the id what comes again',
        '  sink "print" is given every item at least once, with the same id each time',
        "",
        "slots needed: 14 (22 if every pool grew to its maximum)",
        "",
        "Spark settings",
        *(f"  {line}" for line in spark_conf.describe()),
    ]


def test_a_forward_stream_through_the_shuffle_says_why() -> None:
    flow = Flow("f")
    source = flow.source(Partitioned(2), name="s")
    flow.sink(ignore, source.forward(), source.map(ignore, name="a").by_key(lambda item: item), name="k")
    text = flow.explain()
    assert (
        "forward through the shuffle, replica i to replica i,"
        ' because the two are also connected by way of "a"'
    ) in text
    assert "  a->k: key: a lambda; " in text
    assert 'flow "f": items without ids (default)' in text


def test_limits_are_shown_where_they_are_set() -> None:
    flow = Flow("f")
    limited = flow.source(Partitioned(1)).map(ignore, memory="200 MB", timeout="5 s")
    limited.sink(print, memory=1 << 30, chain=False)
    text = flow.explain()
    assert "latency_kind read_ready (default); memory 200 MB; timeout 5 s\n" in text
    assert "on_error fail (default); memory 1 GiB; chain False: always in a process of its own\n" in text


def test_the_error_policy_of_a_source_is_shown_where_it_is_set() -> None:
    flow = Flow("f")
    flow.source(Partitioned(2), name="s", on_error="dead_letter").sink(print)
    assert "s: source; parallelism 2; on_error dead_letter\n" in flow.explain()


def test_a_source_with_fewer_replicas_than_splits() -> None:
    flow = Flow("f")
    flow.source(Partitioned(3), name="s", replicas=2).sink(print)
    assert "s: source; parallelism 2; 3 splits\n" in flow.explain()


def test_the_time_to_catch_up_is_shown_where_it_is_set() -> None:
    flow = Flow("f")
    flow.source(Partitioned(2), name="s", catch_up="30 s").sink(print)
    assert "s: source; parallelism 2; catch_up 30 s\n" in flow.explain()


def test_timers_and_no_constraints() -> None:
    class Timed(Splitter):
        every = "200 ms"

        def timer(self, out: object) -> None: ...

    flow = Flow("f")
    flow.source(Partitioned(1)).task(Timed).sink(print)
    assert "; every 200 ms" in flow.explain()
    assert "constraints\n  none, so it runs without a policy\n" in flow.explain()


@given(flows())
def test_everything_is_mentioned(flow: Flow) -> None:
    graph, text = flow.graph(), flow.explain()
    lines = [line.strip() for line in text.splitlines()]
    layout = lay_out(graph)
    for task in graph.tasks:
        assert sum(line.startswith(f"{task.name}: ") for line in lines) == 1
    for stream in graph.streams:
        assert sum(line.startswith(f"{stream.name}: ") for line in lines) == 1
    for layer in layout.layers:
        assert sum(line.startswith(f"layer {layer.index}: ") for line in lines) == 1
    applied = 0 if graph.ids else 1
    applied += sum(len(task.defaults) + len(task.parallelism.defaults) for task in graph.tasks)
    applied += sum(len(stream.defaults) for stream in graph.streams)
    assert text.count("(default)") == applied
    assert f"slots needed: {layout.slots} ({max_slots(graph)} " in text
    assert text.count("forward through the shuffle") == sum(
        layout.why_apart(stream) is not None for stream in graph.streams
    )


class ManyWriter:
    def write_many(self, items: object) -> None: ...


def test_sizes_of_batches() -> None:
    flow = Flow("batches")
    flow.source(Partitioned(1), name="numbers").map_batches(alone).sink(ManyWriter, size=5)
    text = flow.explain()
    assert "alone (default name): map_batches; " in text
    assert "latency_kind read_ready (default); batches of at most 1024 items (default)" in text
    assert "on_error fail (default); batches of at most 5 items\n" in text
