"""Reports and a store for tests of backlogs: times are seconds, and a report is read at `READ_S`."""

from dataclasses import replace

from rgd.core.backlog.model import Ledger, Position, Source, SubscriptionBacklog, TopicBacklog
from rgd.core.backlog.quota import Blocked
from rgd.core.backlog.settings import BacklogSettings
from rgd.core.backlog.store import BacklogStore
from rgd.core.backlog.topic import TopicState
from rgd.core.bounds import BOUNDS, BacklogBounds
from rgd.core.policies.model import BacklogAction, BacklogQuota, BacklogQuotas, Backlogs
from rgd.core.units import NS_PER_S, Nanos

EU = "persistent://acme/orders/eu"
NAMESPACE = "acme/orders"
#: When reports are read, s since 1970 by the clock of the messages.
READ_S = 1_000_000
EVICT = BacklogAction.EVICT
HOLD = BacklogAction.HOLD
REFUSE = BacklogAction.REFUSE


def s(seconds: float) -> Nanos:
    """A moment of the broker's clock."""
    return Nanos(round(seconds * NS_PER_S))


def ledger(
    number: int, entries: int = 10, size: int = 100, closed_ago_s: float | None = None
) -> Ledger:
    """A ledger, closed so long before the report; None: it is the current one."""
    closed = None if closed_ago_s is None else round((READ_S - closed_ago_s) * 1000)
    return Ledger(number, entries, size, closed)


def sub(
    name: str = "a", at: tuple[int, int] | None = (1, 0), ago_s: float | None = None
) -> SubscriptionBacklog:
    """A subscription whose oldest message is there, and was published so long before the report."""
    published = None if ago_s is None else round((READ_S - ago_s) * 1000)
    oldest = None if at is None else Position(*at)
    return SubscriptionBacklog(name, oldest, publish_time_ms=published)


def report(
    *subscriptions: SubscriptionBacklog,
    ledgers: tuple[Ledger, ...] = (ledger(1),),
    topic: str = EU,
    source: Source = Source.PUSHED,
) -> TopicBacklog:
    """The report of a topic."""
    return TopicBacklog(topic, ledgers, subscriptions, source, READ_S * 1000)


def size_quota(size: int, action: BacklogAction = HOLD) -> BacklogQuotas:
    """A quota of bytes alone."""
    return BacklogQuotas(size=BacklogQuota(size, -1, action))


def time_quota(seconds: int, action: BacklogAction = HOLD) -> BacklogQuotas:
    """A quota of seconds alone."""
    return BacklogQuotas(age=BacklogQuota(-1, seconds, action))


class House:
    """A store whose tests say what is reported and when it is checked."""

    def __init__(
        self,
        *,
        topics: dict[str, BacklogQuotas] | None = None,
        namespaces: dict[str, BacklogQuotas] | None = None,
        settings: BacklogSettings | None = None,
        bounds: BacklogBounds = BOUNDS.backlog,
    ) -> None:
        self.blocked: dict[str, Blocked | None] = {}
        self.store = BacklogStore(
            settings or BacklogSettings(is_precise=True), self.blocked.__setitem__, bounds
        )
        self.store.backlogs = Backlogs(namespaces or {}, topics or {})

    def report(self, *reports: TopicBacklog, at: float = 0) -> None:
        """Let reports come in, which must be taken."""
        for one in reports:
            assert self.store.report(one, s(at))

    def check(self, at: float = 1, *, confirms: bool = True) -> None:
        """Ask for a check and let it end; whoever pushes confirms the evictions that it names."""
        ended = self.store.checks + 1
        self.store.ask()
        while self.store.checks < ended:
            for named in self.store.work(s(at)):
                if confirms and named.source is Source.PUSHED:
                    self.store.evicted_now(named)

    def state(self, topic: str = EU) -> TopicState:
        """A topic's state; it must be known."""
        state = self.store.get(topic)
        assert state is not None
        return state

    def evicts(self, topic: str = EU) -> dict[str, tuple[int, int]]:
        """By subscription, the position to skip to."""
        return {
            one.subscription: (one.to.ledger, one.to.entry) for one in self.state(topic).evictions
        }

    def age_s(self, topic: str = EU) -> float | None:
        """The age of the topic's backlog at the last check."""
        checked = self.state(topic).checked
        return None if checked is None or checked.age_ms is None else checked.age_ms / 1000


def carried_out(before: TopicBacklog, house: House) -> TopicBacklog:
    """The report once the evictions that are named are carried out."""
    to = {one.subscription: one.to for one in house.state(before.topic).evictions}
    return replace(
        before,
        subscriptions=tuple(
            one
            if one.name not in to
            else SubscriptionBacklog(one.name, to[one.name], None, None, one.messages)
            for one in before.subscriptions
        ),
    )
