"""The directory of the sockets: private, one's own, and free of what dead drivers left."""

import os
import socket
import time
from pathlib import Path

import pytest

from penstock.operate.place import PlaceError, check, clear, connect, places, prepare, socket_path


def leave_stale(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()


def test_the_runtime_directory_of_the_session_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    shared = tmp_path / f"penstock-{os.getuid()}"
    assert places({}) == [shared]
    assert places({"XDG_RUNTIME_DIR": "relative"}) == [shared]
    assert places({"XDG_RUNTIME_DIR": str(tmp_path / "missing")}) == [shared]
    session = tmp_path / "session"
    session.mkdir()
    assert places({"XDG_RUNTIME_DIR": str(session)}) == [session / "penstock", shared]


def test_a_session_of_somebody_else_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    me = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: me + 1)
    assert tmp_path / "penstock" not in places({"XDG_RUNTIME_DIR": str(tmp_path)})


def test_it_is_made_private_and_may_be_there_already(tmp_path: Path) -> None:
    for _ in range(2):
        prepare(tmp_path / "p")
        assert (tmp_path / "p").stat().st_mode & 0o777 == 0o700


def test_what_others_can_enter_is_refused_with_the_remedy(tmp_path: Path) -> None:
    place = tmp_path / "p"
    place.mkdir()
    place.chmod(0o755)
    with pytest.raises(PlaceError, match=f"can be entered by others and is not used; run: chmod 700 {place}"):
        prepare(place)


def test_a_file_or_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for name in ("file", "link"):
        with pytest.raises(PlaceError, match="is no directory; remove it"):
            prepare(tmp_path / name)


def test_a_directory_of_somebody_else_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(tmp_path / "p")
    monkeypatch.setattr(os, "getuid", lambda: 12_345_678)
    with pytest.raises(PlaceError, match=r"p belongs to user \w+ and is not used; have it removed"):
        check(tmp_path / "p")


def test_a_socket_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_stale(tmp_path / "1-a.sock")
    monkeypatch.setattr(os, "getuid", lambda: 12_345_678)
    with pytest.raises(PlaceError, match=r"1-a.sock belongs to user \w+ and is not used"):
        connect(tmp_path / "1-a.sock", 1.0)


def test_what_cannot_be_made_is_told(tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match="cannot be made: No such file or directory"):
        prepare(tmp_path / "missing" / "p")


def test_a_path_that_no_socket_can_have_is_refused_before(tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match="is too long for a socket"):
        socket_path(tmp_path / ("x" * 100), 4711, "9f12ab34cd")
    assert socket_path(Path("/run"), 4711, "9f12ab34cd") == Path("/run/4711-9f12ab34.sock")


def test_stale_sockets_are_cleared_and_living_ones_stay(tmp_path: Path) -> None:
    leave_stale(tmp_path / "1-dead.sock")
    with socket.socket(socket.AF_UNIX) as living:
        living.bind(str(tmp_path / "2-living.sock"))
        living.listen()
        assert clear(tmp_path) == [tmp_path / "2-living.sock"]
        assert not (tmp_path / "1-dead.sock").exists()


def test_one_that_is_being_made_has_a_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_stale(tmp_path / "1-a.new")
    clear(tmp_path)
    assert (tmp_path / "1-a.new").exists()
    later_s = time.time() + 61
    monkeypatch.setattr(time, "time", lambda: later_s)
    clear(tmp_path)
    assert not (tmp_path / "1-a.new").exists()


def test_a_directory_without_sockets_goes_and_one_with_others_stays(tmp_path: Path) -> None:
    place = tmp_path / "p"
    prepare(place)
    leave_stale(place / "1-dead.sock")
    (place / "notes").touch()
    assert clear(place) == []
    assert [path.name for path in place.iterdir()] == ["notes"]
    (place / "notes").unlink()
    assert clear(place) == []
    assert not place.exists()
