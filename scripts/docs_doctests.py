"""Extension of Griffe, which reads the code for the reference: examples in docstrings become code blocks."""

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\n|$).*)*", re.MULTILINE)


def fenced(text: str) -> str:
    """Each run of lines that begins with a prompt, up to an empty line, in a fence.

    >>> fenced("Twice.\\n\\n>>> 2 * 2\\n4\\n\\nMore.").replace("`" * 3, "FENCE").splitlines()
    ['Twice.', '', 'FENCE pycon', '>>> 2 * 2', '4', 'FENCE', '', 'More.']
    """
    fence = "`" * 3
    return _EXAMPLE.sub(lambda found: f"{fence} pycon\n{found[0]}\n{fence}", text)


class Doctests(griffe.Extension):
    """Applied to everything that has a docstring."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
