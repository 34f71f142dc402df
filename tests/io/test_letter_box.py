"""Dead letters in their files: which wait to be played back, and what a replay leaves, done or killed."""

import pickle
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.flow.record import Metadata, Record
from penstock.io.letter_box import LetterBox
from penstock.io.letters import Letter, LetterError, Letters, LettersOffset
from penstock.io.protocol import SourceClock

CLOCK = SourceClock(0, None)


def letter(item: Any, **changes: Any) -> bytes:
    told: dict[str, Any] = {"input": "a->b", "id": (1, item), "pickle": pickle.dumps(item), **changes}
    made = Letter(task="b", replica=0, item=repr(item), error="E", traceback="", **told)
    return msgspec.json.encode(made) + b"\n"


def write(place: Path, *lines: bytes) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("ab") as file:
        file.write(b"".join(lines))


def items_in(box: LetterBox, task: str, came_by: str = "a->b", limit: int = 512) -> list[Any]:
    stretches, _ = box.waiting()
    source = Letters(tuple(stretches.get(task, ())), came_by)
    reader = source.open("letters", source.start("letters"), CLOCK)
    found: list[Any] = []
    while (got := reader.read(limit, 0)) is not None:
        assert len(got[0]) == len(reader.ids)
        found += [record.value for record in got[0]]
    return found


def replayed(box: LetterBox, *failed_again: bytes, task: str = "b") -> None:
    stretches, _ = box.waiting()
    attempt = box.begin()
    if failed_again:
        write(attempt / f"{task}-0.jsonl", *failed_again)
    box.done(attempt, stretches[task])


def test_letters_wait_until_they_are_played_back(tmp_path: Path) -> None:
    write(tmp_path / "b-0.jsonl", letter(1), letter(2))
    write(tmp_path / "b-1.jsonl", letter(3))
    write(tmp_path / "other-b-0.jsonl", letter(4))
    box = LetterBox(tmp_path)
    assert sorted(box.waiting()[0]) == ["b", "other-b"]
    assert items_in(box, "b") == [1, 2, 3]
    replayed(box, letter(2))
    assert items_in(box, "b") == [2], "what failed again waits again, once"
    assert items_in(box, "other-b") == [4]
    write(tmp_path / "b-0.jsonl", letter(5))
    assert items_in(LetterBox(tmp_path), "b") == [5, 2]
    replayed(box)
    assert items_in(box, "b") == []


def test_a_killed_replay_leaves_everything_as_it_was(tmp_path: Path) -> None:
    write(tmp_path / "b-0.jsonl", letter(1), letter(2))
    box = LetterBox(tmp_path)
    write(box.begin() / "b-0.jsonl", letter(1))
    assert items_in(box, "b") == [1, 2]
    attempt = box.begin()
    assert list(attempt.iterdir()) == [], "what the killed one wrote is gone"
    box.done(attempt, box.waiting()[0]["b"])
    assert items_in(box, "b") == []


def test_one_file_of_a_directory(tmp_path: Path) -> None:
    write(tmp_path / "b-0.jsonl", letter(1))
    write(tmp_path / "b-1.jsonl", letter(2))
    box = LetterBox(tmp_path / "b-1.jsonl")
    assert items_in(box, "b") == [2]
    replayed(box, letter(2))
    assert items_in(LetterBox(tmp_path), "b") == [1, 2]
    assert items_in(LetterBox(tmp_path / "replay-1" / "b-0.jsonl"), "b") == [2]


def test_half_a_letter_is_told_and_left(tmp_path: Path) -> None:
    write(tmp_path / "b-0.jsonl", letter(1), letter(2)[:20])
    box = LetterBox(tmp_path)
    assert box.waiting()[1] == [
        f"{tmp_path}/b-0.jsonl ends with 20 bytes of half a letter, which are left there"
    ]
    assert items_in(box, "b") == [1]
    replayed(box)
    assert items_in(box, "b") == []


def test_one_replay_at_a_time(tmp_path: Path) -> None:
    box = LetterBox(tmp_path)
    with (
        box.locked(),
        pytest.raises(LetterError, match=r"are being replayed now$"),
        LetterBox(tmp_path).locked(),
    ):
        pass
    with box.locked():
        pass


def test_only_items_that_came_by_the_stream_are_read_in_any_portions(tmp_path: Path) -> None:
    others = letter(9, input="x->b"), letter(8, input=None, pickle=None)
    write(tmp_path / "b-0.jsonl", letter(1), *others, letter(2), letter(3))
    box = LetterBox(tmp_path)
    for limit in (1, 2, 3, 4):
        assert items_in(box, "b", limit=limit) == [1, 2, 3]
    assert items_in(box, "b", "x->b") == [9]


def test_reading_goes_on_at_an_offset_and_ids_and_metadata_come_along(tmp_path: Path) -> None:
    known = Metadata({"trace": b"\xff"}, 7, b"key")
    write(tmp_path / "b-0.jsonl", letter(1), letter(2, metadata=known))
    source = Letters(tuple(LetterBox(tmp_path).waiting()[0]["b"]), "a->b")
    reader = source.open("letters", source.start("letters"), CLOCK)
    assert reader.read(1, 0) == ([Record(1, {})], None)
    again = source.open("letters", LettersOffset(**reader.offset), CLOCK)
    assert again.read(5, 0) == ([Record(2, {"trace": b"\xff"}, 7, b"key")], None)
    assert again.ids == [(1, 2)]
    assert again.read(5, 0) is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"{}\n", "byte 0: this is no dead letter: "),
        (b"no json\n", "byte 0: this is no dead letter: "),
        (letter(1, pickle=b"junk"), "the item of this dead letter cannot be unpickled (UnpicklingError: "),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, line: bytes, words: str) -> None:
    write(tmp_path / "b-0.jsonl", line)
    with pytest.raises(LetterError) as caught:
        items_in(LetterBox(tmp_path), "b")
    assert str(caught.value).startswith(f"{tmp_path}/b-0.jsonl, ")
    assert words in str(caught.value)


def test_files_that_are_not_what_was_marked_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "b-0.jsonl", letter(1))
    box = LetterBox(tmp_path)
    replayed(box)
    (tmp_path / "b-0.jsonl").write_bytes(b"")
    with pytest.raises(LetterError, match=r"is shorter than what was played back .*replay-1/marks\.json"):
        box.waiting()
    (tmp_path / "replay-1" / "marks.json").unlink()
    with pytest.raises(LetterError, match=r"marks\.json, which says what was played back, cannot be read"):
        box.waiting()
    with pytest.raises(LetterError, match=r"^no dead letters: .*nowhere is not there$"):
        LetterBox(tmp_path / "nowhere")
