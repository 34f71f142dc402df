"""Classes that travel to the workers by their names."""

import sys

import msgspec


def refuse_unimportable(struct: object, where: str, error: type[Exception]) -> None:
    """A struct of msgspec that travels by value would arrive without its fields; others are fine."""
    if not (isinstance(struct, type) and issubclass(struct, msgspec.Struct)):
        return
    if struct.__module__ == "__main__" or struct.__module__ not in sys.modules:
        raise error(
            f"{where}: struct {struct.__name__} is defined in the script that is run, where workers cannot"
            " import it; define it in a module of its own"
        )
