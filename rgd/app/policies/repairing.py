"""Rewrites a key's winning record where a losing record stays last in the policies table.

Law: after the repair, a compaction keeps the winning record. Nothing here raises, and a
key costs at most one write for each check, however often another daemon writes losing records.
How: the writers of the two records repair at the second check; the others some checks later, in case
both are gone. The repaired record gets a new revision, for readers that saw only the losing one.
`ledger` knows the misplaced records.
"""

import asyncio
import zlib
from typing import Final

import structlog

from rgd.app.policies.filling import Put
from rgd.app.policies.ledger import Ledger
from rgd.app.policies.refusals import Refusals, shown
from rgd.ports.exchange import ExchangeError
from rgd.wire.errors import WireError
from rgd.wire.policies import encode_policy

#: Most repairs of one check; the other keys wait for the next one.
REPAIRS_MAX: Final = 1000
#: A daemon that wrote neither of the two records repairs at one of this many later checks.
_BYSTANDERS_LOOKS: Final = 8
#: Most repairs of one check that are logged one by one; of more only the number is logged.
_LOGGED_MAX: Final = 20

_log = structlog.get_logger("rgd.policies")


class Repairing:
    """Misplaced records of a table."""

    def __init__(
        self, ledger: Ledger, writer: str, put: Put, refusals: Refusals, *, every_s: float
    ) -> None:
        self._ledger = ledger
        self._writer = writer
        self._put = put
        self._refusals = refusals
        self._every_s = every_s

    async def run(self) -> None:
        """Check for misplaced keys until cancelled."""
        looks: dict[str, int] = {}
        while True:
            await asyncio.sleep(self._every_s)
            self._refusals.log()
            misplaced = self._ledger.misplaced
            looks = {key: looks.get(key, 0) + 1 for key in misplaced}
            due = [key for key in misplaced if looks[key] > self._patience(key)]
            if len(due) > _LOGGED_MAX:
                _log.warning("many policies are hidden by other records", policies=len(due))
            for position, key in enumerate(due[:REPAIRS_MAX]):
                if not await self._put_again(key, is_logged=position < _LOGGED_MAX):
                    break  # the rest is repaired at the next check

    async def _put_again(self, key: str, *, is_logged: bool) -> bool:
        """Write the winning record last; False if the table accepts nothing now."""
        if key not in self._ledger.misplaced:
            return True
        record = self._ledger.next(key, self._ledger.value(key), self._writer)
        try:
            await self._put(key, encode_policy(record))
        except ExchangeError:
            return False
        except WireError as error:
            self._refusals.add(key, str(error))
            self._ledger.misplaced.pop(key, None)
            return True
        if is_logged:
            _log.info("wrote a policy again that another record would have hidden", key=shown(key))
        return True

    def _patience(self, key: str) -> int:
        """The number of checks for which a misplaced key is left to its writers."""
        known = self._ledger.get(key)
        writers = {self._ledger.misplaced[key].writer, known.writer if known else ""}
        if self._writer in writers:
            return 1
        return 2 + zlib.crc32(self._writer.encode()) % _BYSTANDERS_LOOKS
