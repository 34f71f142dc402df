"""The bench of codecs: what it holds against each other."""

from penstock.bench import codecs


def test_every_contestant_can_be_coded_and_read() -> None:
    for contestant in codecs.contestants().values():
        found = codecs.cost(contestant, 3, rounds=1)
        assert found["bytes"] > 10
        assert found["code_us"] > 0
        assert found["read_us"] > 0


def test_msgspec_is_held_against_pickle() -> None:
    figures = {
        "struct_by_msgspec_of_100": {"bytes": 120.0, "code_us": 0.2, "read_us": 0.9},
        "array_like_struct_by_msgspec_of_100": {"bytes": 90.0, "code_us": 9.0, "read_us": 9.0},
        "struct_by_pickle_of_100": {"bytes": 100.0, "code_us": 1.0, "read_us": 1.0},
    }
    assert [(check.value, check.ok) for check in codecs.checks(figures)] == [
        (0.9, True),
        (0.2, True),
        (0.9, False),
    ]
