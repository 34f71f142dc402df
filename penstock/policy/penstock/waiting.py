"""How long items wait before a task that has p replicas.

    W(p) = T + e K(p)        K(p) = S rho / (1 - rho) (cA^2 + cS^2) / 2 * g,    rho = b / p

K is Kingman's formula with the correction g of Kraemer and Langenbach-Belz for arrivals more regular than
Poisson's; b = rate * S are the replicas that would be busy all the time, where a share c of the rate is
broadcast to p0 replicas now rate (1 - c + c p / p0) * S. T is the way, e what measurements
say to K; both are learnt (see `learnt`).

Kingman takes the arrivals as given, but they change with p. Items come in envelopes of n = 1 + r L, where r
is the rate of a channel (one of `senders` * p) and L the lifetime, so

    cA^2 + 1 = n (cB^2 + 1)          cB of the envelopes

and dealing in turn makes those more regular: of p receivers each gets every p-th, cB^2 ~ x / p + 1 - x, where
x = 1 / (1 + 4 (1 - rho)^2 (senders - 1)) tells how far several senders blur that (Whitt's QNA). By key it is
a lottery, and cB stays.

In an interval of T_i seconds, with n = rate T_i items, the mean latency is not S + W: it has luck of three
kinds, whose squares add up. Queues have long memories. The luck of a mean wait is W v, where v^2 is that of
the M/M/1 queue (Daley 1968; Whitt, Planning queueing simulations, 1989) with the variability above for its 2,

    v^2 = (2 + 5 rho - 4 rho^2 + rho^3) S (cA^2 + cS^2) / 2 / ((rho (1 - rho))^2 p T_i)

but not by more than a single wait, (2 - rho) / rho. One long item holds up all that is dealt to its replica
meanwhile, s rho / S of them for s / 2, however idle the others are; what exponential times have of that is in
v already. And it takes its own time:

    rho S / 2 sqrt((E[s^4] / S^4 - 24) / n)        and        S cS / sqrt(n)

E[s^4] is that of gamma distributed times, S^4 (1 + c) (1 + 2 c) (1 + 3 c) with c = cS^2.

e is what the waits w of the last intervals say, each by how sure it is, if e is usually off by OFF:

    e = (1 / OFF^2 + sum of KEPT^k K (w - T) / l^2) / (1 / OFF^2 + sum of KEPT^k (K / l)^2)

k intervals ago, where l is the luck above. So one interval of many short items is believed at once, and of
few long ones it takes many. What is above e K + LARGEST l is luck, which luck.py counts: not both. T is the
least that K left of any of the last intervals, so one with bad luck is no way.
"""

import math
from dataclasses import dataclass, replace

from penstock.policy.penstock.luck import LARGEST

FIT_LIMITS = (0.3, 4.0)
_KEPT = 0.95
_OFF = 0.4
_SURE = 0.1
"""Of K: what an interval is off at least."""
_WAYS = 10
"""Intervals."""
_EXPONENTIAL = 24.0
"""E[s^4] / S^4 of exponential times."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """How items come to a task: `dealt` is the share of them that come in turn, not by key."""

    cv2: float
    replicas: int
    dealt: float
    senders: float
    per_lifetime: float
    """Items of all channels together in a lifetime."""

    def envelope(self, replicas: int) -> float:
        """n."""
        return 1.0 + self.per_lifetime / (max(1.0, self.senders) * replicas)

    def cv2_with(self, replicas: int, utilization: float) -> float:
        """cA^2 with so many replicas."""
        blurred = 4.0 * (1.0 - utilization) ** 2 * (max(1.0, self.senders) - 1.0)
        x = self.dealt / (1.0 + blurred)
        regular = (x / replicas + 1.0 - x) / (x / self.replicas + 1.0 - x)
        envelopes = max(0.0, (self.cv2 + 1.0) / self.envelope(self.replicas) - 1.0)
        return self.envelope(replicas) * (envelopes * regular + 1.0) - 1.0


@dataclass(frozen=True, slots=True)
class Fit:
    """T and e of a task. `rests` are what K left of the last waits; `above` and `below` are the sums of e."""

    rests: tuple[float, ...] = ()
    above: float = 0.0
    below: float = 0.0

    @property
    def way_ms(self) -> float:
        """T."""
        return min(self.rests, default=0.0)

    @property
    def fit(self) -> float:
        """e."""
        low, high = FIT_LIMITS
        sure = 1.0 / _OFF**2
        return min(high, max(low, (sure + self.above) / (sure + self.below)))


@dataclass(frozen=True, slots=True)
class Wait:
    """The queue of a task: W and its luck by the number of replicas. `exponent` is that of capacity.py."""

    service_ms: float
    service_cv2: float
    rate_per_s: float
    arrivals: Arrivals | None
    """None: they stay as they are, with this `cv2`."""
    cv2: float
    now: int
    exponent: float
    fit: Fit
    interval_s: float
    copied: float = 0.0
    """c."""

    def busy(self, replicas: int) -> float:
        """b, with so many replicas."""
        service_s = self.service_ms / 1000.0 * math.pow(replicas / self.now, self.exponent)
        return self.rate_per_s * (1.0 - self.copied + self.copied * replicas / self.now) * service_s

    def wait_ms(self, replicas: int) -> tuple[float, float]:
        """W, and the luck of latency; infinite for too few replicas."""
        rho = self.busy(replicas) / replicas
        if rho >= 1.0:
            return math.inf, math.inf
        service_ms = self.service_ms * math.pow(replicas / self.now, self.exponent)
        cv2 = self.cv2 if self.arrivals is None else self.arrivals.cv2_with(replicas, rho)
        varies = cv2 + self.service_cv2
        wait_ms = self.fit.fit * kingman_ms(service_ms, rho, cv2, self.service_cv2)
        luck2 = (2.0 + 5.0 * rho - 4.0 * rho**2 + rho**3) * service_ms / 1000.0 * varies / 2.0
        luck2 /= (1.0 - rho) ** 2 * replicas * self.interval_s
        square = (wait_ms / rho) ** 2 * min(rho * (2.0 - rho), luck2) if rho > 0.0 else 0.0
        square += service_ms * service_ms * self._of_items(rho)
        return self.fit.way_ms + wait_ms, math.sqrt(square)

    def _of_items(self, rho: float) -> float:
        """The luck of single items: its square, over that of S."""
        c = self.service_cv2
        fourth = (1.0 + c) * (1.0 + 2.0 * c) * (1.0 + 3.0 * c) if c > 0.0 else 0.0
        return (rho * rho / 4.0 * max(0.0, fourth - _EXPONENTIAL) + c) / (self.rate_per_s * self.interval_s)


def kingman_ms(service_ms: float, rho: float, arrival_cv2: float, service_cv2: float) -> float:
    """K."""
    varies = arrival_cv2 + service_cv2
    if varies <= 0.0 or rho <= 0.0:
        return 0.0
    regular = 1.0
    if arrival_cv2 < 1.0:
        regular = math.exp(-2.0 * (1.0 - rho) * (1.0 - arrival_cv2) ** 2 / (3.0 * rho * varies))
    return service_ms * rho / (1.0 - rho) * varies / 2.0 * regular


def learnt(fit: Fit, measured_ms: float, kingman: float, luck_ms: float) -> Fit:
    """With one more interval in which nothing was changed and nothing was too busy.

    Where K explains less than half of a wait, the rest is the way, if it is so always: the least that was
    left in any of the last intervals. Where K explains more, e is what is left.
    """
    rest_ms = max(0.0, measured_ms - kingman)
    if fit.rests and kingman >= measured_ms / 2.0:
        rest_ms = min(rest_ms, fit.way_ms)
    elif kingman >= measured_ms / 2.0:
        rest_ms = 0.0
    rests = (*fit.rests, rest_ms)[-_WAYS:]
    if kingman <= 0.0 or not luck_ms < math.inf:
        return replace(fit, rests=rests)
    luck_ms = max(luck_ms, _SURE * kingman)
    waited_ms = min(max(0.0, measured_ms - min(rests)), fit.fit * kingman + LARGEST * luck_ms)
    square = luck_ms * luck_ms
    return Fit(
        rests,
        _KEPT * fit.above + kingman * waited_ms / square,
        _KEPT * fit.below + kingman * kingman / square,
    )
