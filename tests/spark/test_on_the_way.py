"""Connections between executors with somebody in between, who hears all of it and says what it likes."""

import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from tests.spark.between import Between, between, only
from tests.spark.ends import (
    BY_SASL,
    ENCRYPTED,
    GREETING,
    HOST,
    ROOM,
    Channel,
    Ends,
    java,
    one_way,
    settings_of_links,
    wait_for,
)

PROOF = 0
"""The number of the message by which the caller, and then the called, proves who it is where they encrypt."""


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    with java() as started:
        yield started


@pytest.fixture(params=[ENCRYPTED], ids=["encrypted"])
def ends(jvm: Any, request: pytest.FixtureRequest) -> Iterator[Ends]:
    made = Ends(jvm, request.param)
    yield made
    made.close()


@pytest.fixture
def proxy(ends: Ends) -> Iterator[Between]:
    with between(ends.writing.port()) as made:
        yield made


def flipped(data: bytes) -> bytes:
    """With another last bit."""
    return data[:-1] + bytes([data[-1] ^ 1])


def greeting() -> bytes:
    """In the clear, of executor 9."""
    said = GREETING + b"9"
    return struct.pack(">qbqi", 21 + len(said), 3, 1, len(said)) + said


def last_refusal(ends: Ends) -> str:
    return str(ends.ours.Refusals.seen().last())


def test_what_was_changed_on_the_way_is_not_delivered(ends: Ends, proxy: Between) -> None:
    channel = Channel(ends, port=proxy.port)
    channel.put(1)
    assert channel.take() == 1
    before = ends.refused()
    proxy.from_called.change = only(0, flipped)
    channel.put(2)
    wait_for(channel.watch.hasFailed)
    assert channel.inbox.take(0) is None
    assert ends.refused() == before + 1
    wait_for(lambda: (ends.writing.open(), ends.reading.open()) == (0, 0))


@pytest.mark.parametrize("called", [False, True], ids=["caller", "called"])
def test_a_proof_that_was_changed_on_the_way_is_none(ends: Ends, proxy: Between, called: bool) -> None:
    def prepare() -> None:
        direction = proxy.from_called if called else proxy.from_caller
        direction.change = only(PROOF, flipped)

    proxy.prepare = prepare
    with pytest.raises(Py4JJavaError, match="cannot be reached"):
        ends.reading.to("1", HOST, proxy.port)
    assert (ends.writing.open(), ends.reading.open()) == (0, 0)


@pytest.mark.parametrize("ends", [{}, ENCRYPTED], ids=["plain", "encrypted"], indirect=True)
def test_what_a_good_connection_said_proves_nothing_when_it_is_said_again(ends: Ends, proxy: Between) -> None:
    channel = Channel(ends, port=proxy.port)
    before, heard = ends.refused(), list(proxy.from_caller.heard)
    with socket.create_connection((HOST, ends.writing.port()), timeout=5) as caller:
        try:
            for message in heard:
                caller.sendall(message)
                if not caller.recv(1 << 16):
                    break
        except ConnectionError:
            pass
    wait_for(lambda: ends.refused() == before + 1)
    assert ends.writing.open() == 1
    channel.put(1)
    assert channel.take() == 1


def test_what_is_put_behind_a_proof_in_the_clear_is_not_heard(ends: Ends, proxy: Between) -> None:
    """It comes with the last word of the proof, so it would be read before the cipher is in place."""

    def prepare() -> None:
        proxy.from_caller.change = only(PROOF, lambda data: data + greeting())

    proxy.prepare = prepare
    before = ends.refused()
    with pytest.raises(Py4JJavaError, match="cannot be reached"):
        ends.reading.to("1", HOST, proxy.port)
    assert ends.refused() == before + 1
    assert "more than one message at a time" in last_refusal(ends)
    assert ends.writing.open() == 0


def test_what_is_put_behind_the_answer_to_a_proof_in_the_clear_is_not_heard(
    ends: Ends, proxy: Between
) -> None:
    """The last byte of it would be the first that comes encrypted."""

    def prepare() -> None:
        proxy.from_called.change = only(PROOF, lambda data: data + one_way(bytes(64))[:-1])

    proxy.prepare = prepare
    before = ends.refused()
    with pytest.raises(Py4JJavaError, match="cannot be reached"):
        ends.reading.to("1", HOST, proxy.port)
    assert ends.refused() == before + 1
    assert "more than one message at a time" in last_refusal(ends)


def test_nobody_can_have_them_agree_on_a_connection_in_the_clear(ends: Ends, proxy: Between) -> None:
    """Spark by itself tries SASL without encryption when its own proof is refused."""

    def refused(proof: bytes) -> bytes:
        (number,) = struct.unpack_from(">q", proof, 9)
        proxy.from_called.say(struct.pack(">qbqi", 21 + 2, 5, number, 2) + b"no")
        return b""

    def prepare() -> None:
        proxy.from_caller.change = only(PROOF, refused)

    proxy.prepare = prepare
    with pytest.raises(Py4JJavaError, match="cannot be reached"):
        ends.reading.to("1", HOST, proxy.port)
    assert (ends.writing.open(), ends.reading.open()) == (0, 0)


def test_what_one_said_is_not_taken_for_what_the_other_says(ends: Ends, proxy: Between) -> None:
    """Both directions of a connection have the same key."""
    there = Channel(ends, port=proxy.port)
    watch, inbox = ends.watch(), ends.inbox(1)
    ends.reading.register(2, 7, 1, ends.sender())
    ends.writing.to("2", HOST, ends.reading.port()).open(2, 7, 0, ends.channel(inbox), ROOM, watch)
    before = ends.refused()

    def returned(data: bytes) -> bytes:
        proxy.from_caller.say(data)
        return data

    proxy.from_called.change = only(0, returned)
    there.put(1)
    wait_for(watch.hasFailed)
    assert ends.refused() == before + 1
    assert inbox.take(0) is None


def cipher(jvm: Any, settings: dict[str, str]) -> str | None:
    conf = settings_of_links(jvm, settings)
    return str(conf.cipherTransformation()) if conf.encryptionEnabled() else None


def test_a_cipher_by_which_changes_are_noticed_is_taken_unless_a_user_wants_another(jvm: Any) -> None:
    """Whichever way of Spark's to encrypt was asked for."""
    assert cipher(jvm, {}) is None
    assert cipher(jvm, ENCRYPTED) == cipher(jvm, BY_SASL) == "AES/GCM/NoPadding"
    other = "AES/CTR/NoPadding"
    assert cipher(jvm, {**ENCRYPTED, "spark.network.crypto.cipher": other}) == other
