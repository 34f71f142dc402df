"""How long items wait before a task that has p replicas.

    W(p) = T + e K(p)        K(p) = S rho / (1 - rho) (cA^2 + cS^2) / 2 * g,    rho = b / p

K is Kingman's formula with the correction g of Kraemer and Langenbach-Belz for arrivals more regular than
Poisson's; b = rate * S are the replicas that would be busy all the time. T is the way, e what measurements
say to K; both are learnt (see `learnt`).

Kingman takes the arrivals as given, but they change with p. Items come in envelopes of n = 1 + r L, where r
is the rate of a channel (one of `senders` * p) and L the lifetime, so

    cA^2 + 1 = n (cB^2 + 1)          cB of the envelopes

and dealing in turn makes those more regular: of p receivers each gets every p-th, cB^2 ~ x / p + 1 - x, where
x = 1 / (1 + 4 (1 - rho)^2 (senders - 1)) tells how far several senders blur that (Whitt's QNA). By key it is
a lottery, and cB stays.

In an interval of T_i seconds, with n = rate T_i items, the mean latency is not S + W: it has luck of three
kinds, whose squares add up. Queues have long memories: from the M/M/1 queue, with the variability above,

    v^2 = (1 + rho) S (cA^2 + cS^2) / ((1 - rho)^2 p T_i)        the luck is W v

One long item holds up all that is dealt to its replica meanwhile, s rho / S of them for s / 2, however idle
the others are; and it takes its own time:

    rho S / 2 sqrt(E[s^4] / S^4 / n)        and        S cS / sqrt(n)

E[s^4] is that of gamma distributed times, S^4 (1 + c) (1 + 2 c) (1 + 3 c) with c = cS^2.
"""

import math
from dataclasses import dataclass, replace

FIT_LIMITS = (0.3, 4.0)
_GAIN = 0.1
_MOST_LUCK = 1.0
"""Of v^2."""


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
    """T and e of a task."""

    way_ms: float | None = None
    fit: float = 1.0
    seen: int = 0


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

    def busy(self, replicas: int) -> float:
        """b, with so many replicas."""
        return self.rate_per_s * self.service_ms / 1000.0 * math.pow(replicas / self.now, self.exponent)

    def wait_ms(self, replicas: int) -> tuple[float, float]:
        """W, and the luck of latency; infinite for too few replicas."""
        rho = self.busy(replicas) / replicas
        if rho >= 1.0:
            return math.inf, math.inf
        service_ms = self.service_ms * math.pow(replicas / self.now, self.exponent)
        cv2 = self.cv2 if self.arrivals is None else self.arrivals.cv2_with(replicas, rho)
        varies = cv2 + self.service_cv2
        wait_ms = self.fit.fit * kingman_ms(service_ms, rho, cv2, self.service_cv2)
        luck2 = (1.0 + rho) * service_ms / 1000.0 * varies
        luck2 /= (1.0 - rho) ** 2 * replicas * self.interval_s
        square = wait_ms * wait_ms * min(_MOST_LUCK, luck2)
        square += service_ms * service_ms * self._of_items(rho)
        return (self.fit.way_ms or 0.0) + wait_ms, math.sqrt(square)

    def _of_items(self, rho: float) -> float:
        """The luck of single items: its square, over that of S."""
        c = self.service_cv2
        fourth = (1.0 + c) * (1.0 + 2.0 * c) * (1.0 + 3.0 * c) if c > 0.0 else 0.0
        return (rho * rho / 4.0 * fourth + c) / (self.rate_per_s * self.interval_s)


def kingman_ms(service_ms: float, rho: float, arrival_cv2: float, service_cv2: float) -> float:
    """K."""
    varies = arrival_cv2 + service_cv2
    if varies <= 0.0 or rho <= 0.0:
        return 0.0
    regular = 1.0
    if arrival_cv2 < 1.0:
        regular = math.exp(-2.0 * (1.0 - rho) * (1.0 - arrival_cv2) ** 2 / (3.0 * rho * varies))
    return service_ms * rho / (1.0 - rho) * varies / 2.0 * regular


def learnt(fit: Fit, measured_ms: float, kingman: float) -> Fit:
    """With one more interval in which nothing was changed and nothing was too busy.

    Where K explains less than half of a wait, the rest is the way, if it is so always: it becomes longer
    slowly, and is never longer than what is left in any interval. Where K explains more, e is what is left.
    """
    seen_ms = max(0.0, measured_ms - kingman)
    way_ms = 0.0 if fit.way_ms is None and fit.seen else fit.way_ms
    if way_ms is None and kingman < measured_ms / 2.0:
        way_ms = seen_ms
    elif way_ms is not None:
        longer = way_ms + 0.1 * (seen_ms - way_ms) if kingman < measured_ms / 2.0 else way_ms
        way_ms = min(seen_ms, longer)
    if kingman <= 0.0:
        return replace(fit, way_ms=way_ms)
    low, high = FIT_LIMITS
    ratio = min(high, max(low, (measured_ms - min(way_ms or 0.0, measured_ms)) / kingman))
    gain = max(_GAIN, 1.0 / (fit.seen + 3))
    return Fit(way_ms, fit.fit + gain * (ratio - fit.fit), fit.seen + 1)
