"""A stream in motion: deals items to channels, closes envelopes, delivers them when their time comes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from penstock.io.pauses import pause_s
from penstock.sim.envelopes import (
    ClosedRuns,
    Grid,
    OpenEnvelopes,
    close_by_jump,
    close_by_row,
    close_together,
)
from penstock.sim.parts import Emitted, Parts, concatenated

if TYPE_CHECKING:
    from penstock.sim.arrays import Floats, Ints
    from penstock.sim.model import Keys, StreamModel

# Below this many channels the walk from envelope to envelope beats the walk along all channels side by side.
_MANY_CHANNELS = 128
# Timers of different processes drift apart. Without that, senders of one rate whose lifetimes change at the
# same moment would ship in lockstep for ever, and every receiver would get all their envelopes at once.
_CLOCK_DRIFT = 0.05
# A sleep ends late and looking takes time (0.1 ms on an idle machine, 0.3 ms among sixteen workers), so that
# the last look in a lifetime comes just too late.
_LOOK_S = 3e-4
# Channel of a part whose envelope no later item can join.
_CLOSED = -1


class Stream:
    """State of one stream: whose turn it is, which envelopes are open, which parts are under way."""

    def __init__(self, model: StreamModel, senders: int, receivers: int, rng: np.random.Generator) -> None:
        self.model = model
        self.lifetime_s = model.lifetime_ms / 1000.0
        self.envelopes_per_item = 1.0
        self._rng = rng
        self._under_way = Parts.nothing()
        self._lay_out(senders, receivers)

    def _lay_out(self, senders: int, receivers: int) -> None:
        self.senders, self.receivers = senders, receivers
        self._slots = receivers if self.model.wiring in ("round_robin", "key") else 1
        self._phase = np.zeros(senders, dtype=np.int64)
        self._open = OpenEnvelopes.none(senders * self._slots)
        if self.model.wiring == "round_robin":
            # Senders begin their round at different receivers, so that they do not all fall on the same one.
            offset = np.arange(senders) * receivers // senders
            self._receiver_of = ((np.arange(receivers) + offset[:, None]) % receivers).reshape(-1)
        elif self.model.wiring == "key":
            self._receiver_of = np.tile(np.arange(receivers), senders)
        else:
            self._receiver_of = np.arange(senders)
        self._shares = receiver_shares(self.model.keys, receivers) if self.model.keys else None

    def resize(self, senders: int, receivers: int, now_s: float) -> None:
        """New numbers of replicas: open envelopes are shipped, later items follow the new table.

        Parts under way to a replica that is gone are received by one of those that stay.
        """
        if (senders, receivers) == (self.senders, self.receivers):
            return
        waiting = self._under_way
        self._under_way = replace(
            waiting,
            channel=np.full(waiting.size.size, _CLOSED),
            ships_at=np.minimum(waiting.ships_at, now_s),
            receiver=waiting.receiver % receivers,
        )
        self._lay_out(senders, receivers)

    def pause(self, duration_s: float, now_s: float) -> None:
        """Nothing moves for a while: what has not shipped yet ships later by as much."""
        waiting = self._under_way
        late = np.where(waiting.ships_at > now_s, waiting.ships_at + duration_s, waiting.ships_at)
        self._under_way = replace(waiting, ships_at=late)
        self._open = OpenEnvelopes(self._open.deadline + duration_s, self._open.filled)

    def shares(self) -> Floats:
        """Share of the items that each receiver gets."""
        if self._shares is not None:
            return np.maximum(self._shares, 1e-12)
        each = 1.0 if self.model.wiring == "broadcast" else 1.0 / self.receivers
        return np.full(self.receivers, each)

    @property
    def items_under_way(self) -> int:
        return self._under_way.items()

    def carry(self, emitted: Emitted, horizon_s: float) -> Parts:
        """Take what the sender emitted up to the horizon; return the parts that arrive by then."""
        fresh = self._close(emitted) if emitted.time.size else Parts.nothing()
        if fresh.size.size:
            # Items that fill an envelope opened earlier make its waiting part ship with them.
            closing = np.full(self._open.deadline.size, np.inf)
            joins = ~fresh.opens
            closing[fresh.channel[joins]] = fresh.ships_at[joins]
            waiting = self._under_way
            if waiting.size.size:
                current = waiting.channel != _CLOSED
                ships = waiting.ships_at.copy()
                ships[current] = np.minimum(ships[current], closing[waiting.channel[current]])
                self._under_way = replace(waiting, ships_at=ships)
        self._remember_open(fresh, horizon_s)
        if self.model.wiring == "broadcast":
            fresh = _to_every_receiver(fresh, self.receivers)
        latest = horizon_s - self.model.costs.transport_s
        everything = [self._under_way, fresh]
        arrived = concatenated([parts.only(parts.ships_at <= latest) for parts in everything])
        late = concatenated([parts.only(parts.ships_at > latest) for parts in everything])
        self._under_way = late.compact() if late.size.size else late
        return arrived

    def _close(self, emitted: Emitted) -> Parts:
        limit = self.model.limit_items
        grid = Grid(emitted.time, emitted.counts, self._phase, self._slots)
        origins = emitted.origin
        if (
            self.model.wiring != "key"
            and not self.model.together
            and self.lifetime_s > 0.0
            and self._open.deadline.size >= _MANY_CHANNELS
        ):
            runs = close_by_row(grid, self._lifetimes(), limit, self._open)
        else:
            channel = self._keyed_channels(emitted) if self._shares is not None else grid.channel_of_items()
            if self.lifetime_s == 0.0:
                return self._at_once(emitted, channel)
            order = np.argsort(channel, kind="stable")
            if self.model.together:
                rest_s = pause_s(self.lifetime_s) + _LOOK_S if self.model.paused else 0.0
                runs = close_together(
                    emitted.time, emitted.counts, channel, order, self._lifetimes(), self._open, rest_s
                )
            else:
                counts = np.bincount(channel, minlength=self._open.deadline.size).astype(np.int64)
                runs = close_by_jump(emitted.time[order], counts, self._lifetimes(), limit, self._open)
            origins = origins[order]
        self._phase = (self._phase + emitted.counts) % self._slots
        self.envelopes_per_item = float(runs.opens.sum()) / emitted.time.size
        return self._parts_of(runs, origins)

    def _lifetimes(self) -> Floats:
        """The lifetime by channel; no two senders' clocks are quite in step."""
        drift = 1.0 + _CLOCK_DRIFT * np.linspace(-1.0, 1.0, self.senders) if self.senders > 1 else np.ones(1)
        return np.repeat(self.lifetime_s * drift, self._slots)

    def _at_once(self, emitted: Emitted, channel: Ints) -> Parts:
        """Lifetime 0: every item is an envelope of its own."""
        self._phase = (self._phase + emitted.counts) % self._slots
        self.envelopes_per_item = 1.0
        items = emitted.time.size
        ones = np.ones(items, dtype=np.int64)
        receiver = self._receiver_of[channel]
        opens = np.ones(items, dtype=bool)
        base = np.arange(items)
        return Parts(channel, receiver, emitted.time, ones, emitted.time, opens, base, ones, emitted.origin)

    def _parts_of(self, runs: ClosedRuns, origins: Floats) -> Parts:
        self._filled_now = runs.filled
        return Parts(
            runs.channel,
            self._receiver_of[runs.channel],
            runs.ships_at,
            runs.size,
            runs.emit_sum,
            runs.opens,
            runs.base,
            np.full(runs.size.size, runs.stride, dtype=np.int64),
            origins,
        )

    def _remember_open(self, fresh: Parts, horizon_s: float) -> None:
        deadline, filled = self._open.deadline, self._open.filled
        shipped = deadline <= horizon_s
        deadline[shipped], filled[shipped] = -np.inf, 0
        if not fresh.size.size or self.lifetime_s == 0.0:
            return
        deadline[fresh.channel[~fresh.opens]] = -np.inf
        still = fresh.ships_at > horizon_s
        deadline[fresh.channel[still]] = fresh.ships_at[still]
        filled[fresh.channel[still]] = self._filled_now[still]

    def _keyed_channels(self, emitted: Emitted) -> Ints:
        assert self._shares is not None
        receiver = np.searchsorted(np.cumsum(self._shares), self._rng.random(emitted.time.size), side="right")
        return emitted.replicas() * self._slots + np.minimum(receiver, self.receivers - 1)


def receiver_shares(keys: Keys, receivers: int) -> Floats:
    """Share of the items that each receiver gets when key k goes to receiver k mod receivers."""
    weight = np.arange(1, keys.count + 1, dtype=np.float64) ** -keys.exponent
    share = np.bincount(np.arange(keys.count) % receivers, weights=weight, minlength=receivers)
    return np.asarray(share / share.sum())


def _to_every_receiver(parts: Parts, receivers: int) -> Parts:
    index = np.repeat(np.arange(parts.size.size), receivers)
    return Parts(
        parts.channel[index],
        np.tile(np.arange(receivers), parts.size.size),
        parts.ships_at[index],
        parts.size[index],
        parts.emit_sum[index],
        parts.opens[index],
        parts.base[index],
        parts.stride[index],
        parts.origins,
    )
