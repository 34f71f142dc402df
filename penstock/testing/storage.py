"""A checkpoint's files in memory."""


class MemoryStorage:
    """`Storage` (penstock/epochs/storage.py) that ends with the test.

    >>> storage = MemoryStorage()
    >>> storage.create("log/1", b"one"), storage.create("log/1", b"two"), storage.read("log/1")
    (True, False, b'one')
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def names(self, directory: str) -> list[str]:
        """Names of the files below a directory."""
        return [name for name in self.files if name.startswith(f"{directory}/")]

    def read(self, name: str) -> bytes | None:
        """The content of a file, None if there is none."""
        return self.files.get(name)

    def create(self, name: str, content: bytes) -> bool:
        """Make a file; False if there is one of that name already."""
        return self.files.setdefault(name, content) is content

    def delete(self, name: str) -> None:
        """Remove a file if it is there."""
        self.files.pop(name, None)

    def sweep(self, directory: str) -> None:
        """Nothing is ever half made here."""
