"""Workers with shared cores: who runs where, how much each is slowed down, and what it all costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from penstock.sim.arrays import Floats
    from penstock.sim.model import ClusterModel, TaskModel


class Cluster:
    """Processor sharing: when the threads of a worker want more cores than it has, all are slower.

    The slow-down of a step comes from the demand of the step before; demand is the time the worker's replicas
    were busy at full speed, so it settles where busy time divided by speed equals the cores. A worker counts
    as leased as long as one of its replicas is active.
    """

    def __init__(self, model: ClusterModel, tasks: tuple[TaskModel, ...]) -> None:
        self.model = model
        self._tasks = tasks
        self._sites = sorted({task.site for task in tasks})
        self._speed: dict[str, Floats] = {}
        self.core_seconds = 0.0
        self.busy_core_seconds = 0.0
        self.worker_seconds = 0.0

    def workers(self, site: str, replicas: dict[str, int]) -> int:
        """Workers of a site that have an active replica."""
        return max(-(-replicas[task.name] // task.per_worker) for task in self._tasks if task.site == site)

    def share_cores(
        self, replicas: dict[str, int], busy_s: dict[str, Floats], duration_s: float
    ) -> dict[str, Floats]:
        """Account for one step; return the slow-down of every replica in the next one.

        `busy_s` is how long each replica was busy during the step.
        """
        result: dict[str, Floats] = {}
        for site in self._sites:
            tasks = [task for task in self._tasks if task.site == site]
            workers = self.workers(site, replicas)
            threads = np.zeros(workers)
            wanted = np.zeros(workers)
            for task in tasks:
                here = np.arange(replicas[task.name]) // task.per_worker
                busy = busy_s[task.name] / duration_s
                threads += np.bincount(here, weights=busy, minlength=workers)
                wanted += np.bincount(
                    here, weights=np.full(here.size, self.model.idle_cores), minlength=workers
                )
            cores = self.model.cores_per_worker
            slow = np.maximum(1.0, (threads + wanted) / (cores * self.model.threads_per_core))
            previous = self._speed.get(site)
            if previous is not None and previous.size == slow.size:
                slow = 0.5 * (slow + previous)
            self._speed[site] = slow
            used = np.minimum(cores, threads + wanted)
            self.core_seconds += cores * workers * duration_s
            self.busy_core_seconds += float(used.sum()) * duration_s
            self.worker_seconds += workers * duration_s
            for task in tasks:
                result[task.name] = slow[np.arange(replicas[task.name]) // task.per_worker]
        return result
