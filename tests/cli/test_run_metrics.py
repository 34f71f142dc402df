"""`penstock run --metrics`: what cannot be served is refused before anything starts."""

import pytest
from typer.testing import CliRunner

from penstock.cli.main import app


def test_a_bad_address_is_refused() -> None:
    refused = CliRunner().invoke(app, ["run", "primetest", "--metrics", "nowhere"])
    assert refused.exit_code == 2
    assert "is no address for metrics" in refused.output


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.extras.find_spec", lambda module: None)
    refused = CliRunner().invoke(app, ["run", "primetest", "--metrics", "9464"])
    assert refused.exit_code == 2
    assert "install penstock[metrics]" in refused.output
