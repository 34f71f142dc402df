"""msgspec's complaints about a value, in words that do not need Python."""

import re
from typing import Any, get_args, get_type_hints

_WORDS = {
    "float": "a number",
    "int": "a whole number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_EXPECTED = re.compile(r"Expected `(?P<type>[^`]+)`(?P<limit>[^,]*)")


def complaint(problem: str, kind: type, field: str) -> str:
    """What would be right in `field` of struct `kind`, where msgspec found `problem`.

    >>> complaint("Expected `float | null` >= 0.0, got `str`", object, "service_ms")
    'expected a number or null >= 0.0'
    """
    expected = _EXPECTED.search(problem)
    if expected is not None:
        wanted = " or ".join(_WORDS.get(part.strip(), part.strip()) for part in expected["type"].split("|"))
        return f"expected {wanted}{expected['limit']}"
    if problem.startswith("Invalid enum value"):
        return f"expected {_choices(get_type_hints(kind)[field])}"
    return problem[:1].lower() + problem[1:]


def _choices(hint: Any) -> str:
    """The texts that a literal type allows, alone or in a union."""
    parts = [get_args(part) or (part,) for part in get_args(hint)]
    names = [repr(name) for part in parts for name in part if isinstance(name, str)]
    return ", ".join(names[:-1]) + f" or {names[-1]}"
