"""Secrets are looked up where they are needed."""

import pickle
from pathlib import Path

import pytest

from penstock.flow.errors import FlowError
from penstock.io.secret import secret


def test_from_the_environment_of_the_process_that_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    named = secret(env="GATE_WORD")
    monkeypatch.setenv("GATE_WORD", "sluice")
    assert named.reveal() == "sluice"
    assert b"sluice" not in pickle.dumps(named)
    monkeypatch.delenv("GATE_WORD")
    with pytest.raises(FlowError, match="environment variable GATE_WORD is not set"):
        named.reveal()


def test_from_a_file_without_its_line_break(tmp_path: Path) -> None:
    named = secret(file=tmp_path / "word")
    with pytest.raises(FlowError, match=r"word cannot be read: No such file"):
        named.reveal()
    (tmp_path / "word").write_text("  sluice \n")
    assert named.reveal() == "  sluice "


def test_one_place_is_named() -> None:
    for places in ({}, {"env": "A", "file": "b"}):
        with pytest.raises(FlowError, match="say where it is"):
            secret(**places)
