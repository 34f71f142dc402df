"""What is missing is named with what brings it."""

import pytest

from penstock.extras import MissingExtraError, require


def test_what_is_there_is_not_complained_about() -> None:
    require("msgspec", "core", "everything")


def test_what_is_missing_is_named() -> None:
    with pytest.raises(MissingExtraError) as refused:
        require("no_such_package", "report", "penstock report")
    assert str(refused.value) == "penstock report needs no_such_package; install penstock[report]"
