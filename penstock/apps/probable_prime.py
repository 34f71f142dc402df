"""Is a number prime? Almost surely, by the test of Miller and Rabin."""

from typing import Final

# A random composite number passes that many bases with a probability below 4 ** -24 (Rabin 1980).
BASES: Final = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89)


def is_probable_prime(number: int) -> bool:
    """Miller-Rabin with fixed bases: exact below 3.3e24 (the first 13 primes suffice there), probable above.

    n - 1 = d * 2^s, d odd. For a prime n and every base a, a^d = 1 or a^(d * 2^r) = -1 (mod n) for an r < s.
    No trial division but by 2, so that the work stays uneven: half of the numbers of 32 bytes fail at once,
    most others at the first base, and one in 177 passes all of them.
    """
    if number in BASES:
        return True
    if number < 2 or number % 2 == 0:
        return False
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    return all(_passes(number, base, odd, twos) for base in BASES)


def _passes(number: int, base: int, odd: int, twos: int) -> bool:
    power = pow(base, odd, number)
    if power in (1, number - 1):
        return True
    for _ in range(twos - 1):
        power = power * power % number
        if power == number - 1:
            return True
    return False
