"""Miller-Rabin against what is known for certain."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.apps.probable_prime import BASES, is_probable_prime


def test_agrees_with_a_sieve() -> None:
    limit = 20_000
    composite = bytearray(limit)
    for n in range(2, limit):
        if not composite[n]:
            composite[n * n :: n] = b"\1" * len(range(n * n, limit, n))
    assert [n for n in range(limit) if is_probable_prime(n)] == [
        n for n in range(2, limit) if not composite[n]
    ]


@pytest.mark.parametrize(
    "carmichael", [561, 41041, 825265, 321197185, 5394826801, 3215031751, 341550071728321]
)
def test_numbers_that_fool_weaker_tests_are_composite(carmichael: int) -> None:
    assert not is_probable_prime(carmichael)


@pytest.mark.parametrize("prime", [*BASES, 2**89 - 1, 2**127 - 1, 2**255 - 19, 2**521 - 1])
def test_large_primes_pass(prime: int) -> None:
    assert is_probable_prime(prime)


@given(st.integers(2, 2**128), st.integers(2, 2**128))
def test_products_never_pass(one: int, other: int) -> None:
    assert not is_probable_prime(one * other)


@given(st.integers(max_value=1))
def test_nothing_below_two_is_prime(number: int) -> None:
    assert not is_probable_prime(number)
