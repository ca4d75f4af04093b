"""The slow scheduler on SimPy's clock: arrivals, runs, failures and cloud runs are its processes.

A run that is preempted, fails or is resized interrupts its process. SimPy alone says what happens
next; the scheduler wakes once the processes of an instant are through.
"""

import simpy

from kernels.cluster.oracle import Job
from kernels.cluster.slow_passes import Scheduler

LAST = 2  # of a SimPy instant: after normal events


class SimPyScheduler(Scheduler):
    """The same rules; no search for the next instant."""

    def run(self) -> "SimPyScheduler":
        self.env = simpy.Environment(initial_time=0.0)
        self.ends: dict[Job, simpy.Process] = {}
        self.due: list[Job] = []
        self.came: list[Job] = []
        self.news: list[tuple[str, int]] = []
        self.is_woken = False
        self.env.process(self._arrivals(self.all))
        self.env.process(self._outside(self.events))
        self.env.run()
        return self

    def _until(self, at: float):
        """A timeout that ends at this instant, however the difference is rounded."""
        return self.env.timeout(max(0.0, at - self.env.now), at)

    def _wake(self, at: float) -> None:
        if not self.is_woken:
            self.is_woken, self.now = True, at
            event = simpy.Event(self.env)
            event._ok, event._value = True, at
            event.callbacks.append(lambda _: self._instant())
            self.env.schedule(event, priority=LAST)

    def _arrivals(self, jobs: list[Job]):
        for job in jobs:
            at = yield self._until(job.arrive)
            self.came.append(job)
            self._wake(at)

    def _outside(self, events):
        for when, kind, node in events:
            at = yield self._until(when)
            self.news.append((kind, node))
            self._wake(at)

    def _run_of(self, job: Job):
        try:
            at = yield self._until(job.end)
        except simpy.Interrupt:
            return
        self.due.append(job)
        self._wake(at)

    def _follow(self, job: Job) -> None:
        self._unfollow(job)
        self.ends[job] = self.env.process(self._run_of(job))

    def _unfollow(self, job: Job) -> None:
        known = self.ends.pop(job, None)
        if known is not None and known.is_alive:
            known.interrupt()

    def set_ends(self, j: Job) -> None:
        super().set_ends(j)
        self._follow(j)

    def stop(self, j: Job, how: str) -> None:
        self._unfollow(j)
        super().stop(j, how)

    def _instant(self) -> None:
        self.is_woken = False
        due, self.due = self.due, []
        came, self.came = self.came, []
        news, self.news = self.news, []
        for j in sorted(due, key=lambda j: (j.end, j.index)):
            if j in self.cloud:
                self.cloud.remove(j)
                j.finished, j.left = self.now, 0.0
            else:
                self.stop(j, "finished")
        for kind, node in news:
            self._event(kind, node)
        for j in came:
            self.enqueue(j)
        self.schedule()
        in_cloud = list(self.cloud)
        self.burst(came)
        for j in self.cloud:
            if j not in in_cloud:
                self._follow(j)
        if not self.queue and any(j.curve for j in self.jobs):
            self.grow()
        self.conserve(self)
