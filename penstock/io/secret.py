"""Secrets that a flow names and never holds: they are looked up by the process that needs them."""

import os
from dataclasses import dataclass
from pathlib import Path

from penstock.flow.errors import FlowError


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a secret is. Only this travels to workers, into logs and into what `explain` prints."""

    env: str | None = None
    file: str | None = None

    def reveal(self) -> str:
        """The secret itself, in this process."""
        if self.env is not None:
            found = os.environ.get(self.env)
            if found is None:
                raise FlowError(
                    f"secret: the environment variable {self.env} is not set in this process;"
                    " set it before Spark is started, on every host"
                )
            return found
        assert self.file is not None
        try:
            return Path(self.file).read_text().rstrip("\r\n")
        except OSError as problem:
            raise FlowError(f"secret: {self.file} cannot be read: {problem.strerror}") from None


def secret(*, env: str | None = None, file: str | Path | None = None) -> Secret:
    """A secret from an environment variable, or from a file without its last line break.

    >>> secret(env="KAFKA_PASSWORD")
    Secret(env='KAFKA_PASSWORD', file=None)
    """
    if (env is None) == (file is None):
        raise FlowError(
            'secret: say where it is, as in secret(env="KAFKA_PASSWORD") or secret(file="/run/it")'
        )
    return Secret(env, None if file is None else str(Path(file).absolute()))
