"""Writes usage logs as daemons do, for tests of what reads them: real segments, known numbers.

    maker = LogMaker(tmp_path / "broker-1", "broker-1")
    maker.round(Usage("gold", admitted=70, wanted=70, quota=100))
    maker.lose(3, Usage("gold", admitted=70, wanted=70))   # counted, but no record
    maker.silent(5)                                        # nothing was asked
    maker.close()

Rates are units per second; totals are kept here, as the daemon keeps them. Everything goes through
`rgd.wire`; the writer that fsyncs and rolls is rgd/adapters/usagelog and is not used here.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rgd.core.exchange.messages import RoundRecord, Sender
from rgd.core.exchange.rows import ShareRow, UsageRow
from rgd.core.policies.model import SharePolicyName
from rgd.core.units import MILLI, NS_PER_MS, Kind, Milli, Pair, to_milli
from rgd.wire.frame import BrokerEntryMetadata, Entry, encode_entry
from rgd.wire.log_records import LogEncoder
from rgd.wire.segment import encode_stored, segment_name
from tests.support.columns import shares_of

#: A whole second, so that windows of a second are exactly rounds.
START_MS = 1_795_234_300_000


@dataclass(frozen=True, slots=True)
class Usage:
    """What one group did in a round; units per second, None is unlimited."""

    group: str
    admitted: float = 0
    wanted: float | None = None
    quota: float | None = None
    share: float | None = None
    kind: Kind = Kind.PUBLISH
    admitted_bytes: float = 0
    wanted_bytes: float | None = None
    quota_bytes: float | None = None
    #: The logged rates are this many times what was counted (a rate of the round's last moments).
    rate_factor: float = 1.0
    policy: SharePolicyName = SharePolicyName.MAX_MIN
    refused_by: tuple[tuple[str, Pair], ...] = ()

    @property
    def counted(self) -> tuple[float, float, float, float]:
        """Rates admitted and wanted: messages, bytes, messages, bytes."""
        wanted = self.admitted if self.wanted is None else self.wanted
        wanted_bytes = self.admitted_bytes if self.wanted_bytes is None else self.wanted_bytes
        return self.admitted, self.admitted_bytes, wanted, wanted_bytes


class LogMaker:
    """One broker's log folder."""

    def __init__(
        self,
        folder: Path,
        broker: str,
        *,
        start_ms: int = START_MS,
        period_ms: int = 1000,
        has_broker_metadata: bool = True,
        weight: int = MILLI,
        clock_ahead_ms: int = 0,
        is_chained: bool = False,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.broker = broker
        self.incarnation = 1
        self.now_ms = start_ms
        self.period_ms = period_ms
        #: In thousandths.
        self.weight = weight
        #: By how much the wall clock is ahead of `now_ms`, the true time; change it to let it jump.
        self.clock_ahead_ms = clock_ahead_ms
        #: Those whose reports it receives at once, if their rounds are played in between.
        self.peers: list[LogMaker] = []
        self.sequence = 0
        self.index = 0
        self._has_broker_metadata = has_broker_metadata
        self.has_index = True
        self.totals: dict[tuple[str, Kind], list[float]] = {}
        self._stored: list[bytes] = []
        self._uptime_ms = 5_000_000
        self._stamped_ms = 0
        self._standing_ms = 0
        self._first_index = 0
        self._encoder = LogEncoder()
        #: Whether records continue one another, as a daemon's do.
        self._is_chained = is_chained

    def round(self, *usages: Usage, isolated: bool = False, last: bool = False) -> None:
        """Let a round pass and log it; `last`: as the closing record of an orderly stop."""
        rows = self._pass(usages)
        known = [
            (peer.broker, peer.sequence, peer.incarnation) for peer in self.peers if peer.sequence
        ] or [("broker-9", 7, 1)]
        record = RoundRecord(
            sender=Sender(self.broker, self.incarnation),
            sequence=self.sequence,
            period_ns=(self.period_ms + self._standing_ms) * NS_PER_MS,
            rows=shares_of(*rows),
            peers=tuple((broker, sequence) for broker, sequence, _ in known),
            isolated=isolated,
            weight=self.weight,
            ended_ns=self._uptime_ms * NS_PER_MS,
            last=last,
            peer_incarnations=tuple(incarnation & 0xFFFF_FFFF for *_, incarnation in known),
        )
        self._standing_ms = 0
        self._log(record)

    def round_in_parts(self, *parts: Sequence[Usage], without: Collection[int] = ()) -> None:
        """Let a round pass and log it in parts, each with some groups; `without` are not kept."""
        self.now_ms += self.period_ms
        self._uptime_ms += self.period_ms
        self.sequence += 1
        for part, usages in enumerate(parts, 1):
            record = RoundRecord(
                sender=Sender(self.broker, self.incarnation),
                sequence=self.sequence,
                period_ns=self.period_ms * NS_PER_MS,
                rows=shares_of(*[self._row(usage) for usage in usages]),
                ended_ns=self._uptime_ms * NS_PER_MS,
                part=part,
                parts=len(parts),
            )
            if part not in without:
                self._log(record)

    def rounds(self, count: int, *usages: Usage) -> None:
        """Let equal rounds pass and log them."""
        for _ in range(count):
            self.round(*usages)

    def silent(self, count: int) -> None:
        """Let rounds pass in which nothing was asked: they have no record."""
        for _ in range(count):
            self._pass(())

    def stand_still(self, length_ms: int) -> None:
        """Let time pass without a round, as when the process is stopped; the next round covers it."""
        self.now_ms += length_ms
        self._uptime_ms += length_ms
        self._standing_ms += length_ms

    def lose(self, count: int, *usages: Usage) -> None:
        """Let rounds pass whose records are not kept."""
        for _ in range(count):
            self._pass(usages)

    def restart(self, *, down_ms: int = 0) -> None:
        """Be killed and start again: a new incarnation, counters from 0; the log goes on."""
        self.incarnation += 1
        self.sequence = 0
        self.now_ms += down_ms
        self._uptime_ms += down_ms
        self.totals.clear()

    def _log(self, record: RoundRecord) -> None:
        """Append a record that continues no other one, so that what is lost takes nothing with it."""
        if not self._is_chained:
            self._encoder.restart()
        payload = self._encoder.encode(record)
        self.append(payload.data, payload.properties, payload.metadata)

    def append(
        self, payload: bytes, properties: tuple[tuple[str, str], ...] = (), metadata: bytes = b""
    ) -> None:
        """Append any entry."""
        clock_ms = self.now_ms + self.clock_ahead_ms
        # The writer's law: broker time never runs backwards within a log.
        self._stamped_ms = max(self._stamped_ms, clock_ms)
        stamp = BrokerEntryMetadata(self._stamped_ms, self.index if self.has_index else None)
        entry = Entry(
            producer_name=self.broker,
            sequence_id=self.index,
            publish_time=clock_ms,
            payload=payload,
            properties=properties,
            broker=stamp if self._has_broker_metadata else None,
            unknown=metadata,
        )
        self._stored.append(encode_stored(encode_entry(entry)))
        self.index += 1

    def take_back(self) -> bytes:
        """Take the last entry of the open segment out again."""
        self.index -= 1
        return self._stored.pop()

    def put_again(self, stored: bytes) -> None:
        """Put an entry that was taken back behind the others."""
        self._stored.append(stored)
        self.index += 1

    def flush(self) -> Path:
        """Write what was gathered to the end of the open segment."""
        segment = self.folder / segment_name(self._first_index)
        with segment.open("ab") as file:
            file.write(b"".join(self._stored))
        self._stored.clear()
        return segment

    def roll(self) -> Path:
        """Write what was gathered as the end of a segment, and begin the next."""
        segment = self.flush()
        self._first_index = self.index
        self._encoder.restart()
        return segment

    def close(self) -> Path:
        """Write the last segment."""
        return self.roll()

    def offset_of(self, place: int) -> int:
        """Where the entry at a place of the open segment begins, in bytes."""
        return sum(map(len, self._stored[:place]))

    def _pass(self, usages: Iterable[Usage]) -> list[ShareRow]:
        self.now_ms += self.period_ms
        self._uptime_ms += self.period_ms
        self.sequence += 1
        return [self._row(usage) for usage in usages]

    def _row(self, usage: Usage) -> ShareRow:
        totals = self.totals.setdefault((usage.group, usage.kind), [0.0] * 4)
        for place, rate in enumerate(usage.counted):
            totals[place] += rate * self.period_ms / 1000
        # Over all of a round that was stood still in.
        lasted_ms = max(1, self.period_ms + self._standing_ms)
        factor = usage.rate_factor * self.period_ms / lasted_ms
        rates = [to_milli(rate * factor) for rate in usage.counted]
        counts = [round(total) for total in totals]
        refused = [
            max(0, round((usage.counted[place + 2] - usage.counted[place]) * self.period_ms / 1000))
            for place in (0, 1)
        ]
        return ShareRow(
            usage=UsageRow(
                group=usage.group,
                kind=usage.kind,
                topics=1,
                admitted=Pair(*rates[:2]),
                wanted=Pair(*rates[2:]),
            ),
            share=(_milli(usage.share), None),
            quota=(_milli(usage.quota), _milli(usage.quota_bytes)),
            policy=usage.policy,
            refused=Pair(*refused),
            refused_by=usage.refused_by,
            admitted_total=Pair(*counts[:2]),
            wanted_total=Pair(*counts[2:]),
        )


def log_of(folder: Path, broker: str, *phases: tuple[int, Usage], **options: Any) -> Path:
    """Log phases of equal rounds, in a folder of the broker's name; its one segment.

    Args:
        folder: where that folder is.
        broker: its name.
        phases: how many rounds each, and what was used.
        options: of `LogMaker`.
    """
    maker = LogMaker(folder / broker, broker, **options)
    for rounds, usage in phases:
        maker.rounds(rounds, usage)
    return maker.close()


def _milli(rate: float | None) -> Milli | None:
    return None if rate is None else to_milli(rate)
