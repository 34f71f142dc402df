"""A flow in motion: all stages and streams, advanced step by step in the order of the flow."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from penstock.sim.arrays import Floats, fitted
from penstock.sim.chain import Chain, dealt
from penstock.sim.parts import Emitted, Parts, merged
from penstock.sim.pressure import pace_s
from penstock.sim.source import SourceStage
from penstock.sim.stage import Stage
from penstock.sim.stream import Stream

if TYPE_CHECKING:
    from penstock.sim.actuator import Change
    from penstock.sim.model import FlowModel, StreamModel


class Network:
    """Stages by task, streams by name, and the chains in force."""

    def __init__(self, flow: FlowModel, rng: np.random.Generator) -> None:
        self.flow = flow
        self.sources: dict[str, SourceStage] = {}
        self.stages: dict[str, Stage] = {}
        for task in flow.tasks:
            if task.kind == "source":
                self.sources[task.name] = SourceStage(task, rng)
            else:
                self.stages[task.name] = Stage(task, flow.inputs_of(task.name), rng)
        self.replicas = {task.name: task.replicas for task in flow.tasks}
        self.streams = {
            s.name: Stream(s, self.replicas[s.sender], self.replicas[s.receiver], rng) for s in flow.streams
        }
        self.sent: dict[str, Floats] = {}
        self.chains: list[list[str]] = [[name] for run in flow.pipelines() for name in run]
        self._head_of: dict[str, Chain] = {}
        self._chained_links: set[str] = set()
        self._rng = rng
        self.new_interval()

    def new_interval(self) -> None:
        for name in self.replicas:
            self.stage_of(name).new_interval()
        self.sent = {name: np.zeros(stream.senders) for name, stream in self.streams.items()}

    def stage_of(self, task: str) -> Stage | SourceStage:
        return self.sources[task] if task in self.sources else self.stages[task]

    def emitted_into(self, stream: StreamModel) -> Floats:
        """Items that each sender put into a stream in this interval, or handed on inside a chain."""
        sent = self.sent[stream.name]
        return sent + self.stages[stream.receiver].meter.chained_in if stream.wiring == "forward" else sent

    def items_inside(self) -> int:
        """Items that have left a source and are not finished: in queues or under way."""
        queued = sum(stage.backlog for stage in self.stages.values())
        return queued + sum(stream.items_under_way for stream in self.streams.values())

    def chain(self, chains: list[list[str]]) -> None:
        """Run these chains from now on; what is between two tasks that are chained drains on its own."""
        allowed = self.flow.pipelines()
        self.chains = [list(chain) for chain in chains]
        self._head_of, self._chained_links = {}, set()
        for names in self.chains:
            if len(names) < 2 or not any(names[0] in run for run in allowed):
                continue
            links = tuple(self.streams[f"{a}->{b}"].model for a, b in itertools.pairwise(names))
            self._head_of[names[0]] = Chain(tuple(self.stages[name] for name in names[1:]), links)
            self._chained_links.update(link.name for link in links)

    def change(self, change: Change, now_s: float) -> None:
        """New numbers of replicas."""
        for name, replicas in change.replicas.items():
            self.stage_of(name).resize(replicas, now_s)
            self.replicas[name] = replicas
        for stream in self.streams.values():
            senders, receivers = self.replicas[stream.model.sender], self.replicas[stream.model.receiver]
            stream.resize(senders, receivers, now_s)
            self.sent[stream.model.name] = fitted(self.sent[stream.model.name], senders)

    def pause(self, duration_s: float, now_s: float) -> None:
        """The whole flow stands still for a while."""
        for source in self.sources.values():
            source.pause(duration_s, now_s)
        for stage in self.stages.values():
            stage.pause(duration_s, now_s)
        for stream in self.streams.values():
            stream.pause(duration_s, now_s)

    def step(self, begin_s: float, end_s: float, *, losing: bool = False) -> dict[str, Floats]:
        """Advance all tasks to `end_s`; how long each of their replicas was busy.

        While `losing`, what is due at the sources is lost, and what is inside goes on.
        """
        self._set_costs(begin_s, end_s - begin_s)
        arrived: dict[str, Parts] = {}
        before = {name: self.stage_of(name).meter.busy_s.copy() for name in self.replicas}
        chain_output: dict[str, Emitted] = {}
        for task in self.flow.tasks:
            name = task.name
            if name in self.sources:
                source = self.sources[name]
                out = source.lose(begin_s, end_s) if losing else source.emit(begin_s, end_s)
            else:
                chain = self._head_of.get(name)
                parts = [arrived[stream.name] for stream in self.flow.inputs_of(name)]
                out = self.stages[name].serve(parts, begin_s, end_s, chain)
                if chain is not None:
                    chain_output[chain.later[-1].model.name] = out
                    out = Emitted.nothing(out.counts.size)
                if name in chain_output:
                    out = merged(out, chain_output[name])
            for stream in self.flow.outputs_of(name):
                arrived[stream.name] = self._send(stream, out, begin_s, end_s)
            self.stage_of(name).meter.observed_s += end_s - begin_s
        return {name: self.stage_of(name).meter.busy_s - before[name] for name in self.replicas}

    def _send(self, stream: StreamModel, out: Emitted, begin_s: float, end_s: float) -> Parts:
        items = out
        if stream.only_via is not None and items.via is not None:
            inputs = [s.name for s in self.flow.inputs_of(stream.sender)]
            items = items.only(items.via == inputs.index(stream.only_via))
        ratio = stream.ratio.at(begin_s)
        if ratio != 1.0 and items.time.size:
            items = items.repeated(dealt(np.ones(items.time.size, dtype=np.int64), ratio, self._rng))
        carrier = self.streams[stream.name]
        self.sent[stream.name] += items.counts * (carrier.receivers if stream.wiring == "broadcast" else 1)
        return carrier.carry(items, end_s)

    def _set_costs(self, begin_s: float, duration_s: float) -> None:
        for task in reversed(self.flow.tasks):
            stage = self.stage_of(task.name)
            shipping, pace = 0.0, 0.0
            for model in self.flow.outputs_of(task.name):
                if model.name in self._chained_links:
                    continue
                stream, costs = self.streams[model.name], model.costs
                ratio = model.ratio.at(begin_s)
                envelopes = stream.envelopes_per_item * (
                    stream.receivers if model.wiring == "broadcast" else 1
                )
                shipping += ratio * (costs.send_item_s + envelopes * costs.send_envelope_s)
                receiver = self.stages[model.receiver]
                pace = max(pace, pace_s(stream, receiver, stage.replicas, ratio, duration_s))
            stage.shipping_s = shipping
            stage.pace_s = pace
