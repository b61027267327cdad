"""Rewrites a key's winning record where a losing record stays last in the policies table.

Law: a compaction leaves the last record of each key, and so what counts. Nothing here raises, and a
key costs at most one write a look, however often somebody writes records that do not count.
How: who wrote one of the two records repairs at the second look; the others some looks later, in case
both are gone. What is repaired gets a new revision, for who read only the other record.
Which records are misplaced is `ledger`'s to know.
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

#: How often keys are looked for whose last record does not count.
REPAIR_S: Final = 1.0
#: Repairs of one look; the other keys wait for the next one.
REPAIRS_MAX: Final = 1000
#: Who wrote neither of the two records repairs one of so many looks later.
_BYSTANDERS_LOOKS: Final = 8
#: Repairs of which each is logged; of more in one look only the number.
_TOLD_MAX: Final = 20

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
        """Look for misplaced keys until cancelled."""
        looks: dict[str, int] = {}
        while True:
            await asyncio.sleep(self._every_s)
            self._refusals.tell()
            misplaced = self._ledger.misplaced
            looks = {key: looks.get(key, 0) + 1 for key in misplaced}
            due = [key for key in misplaced if looks[key] > self._patience(key)]
            if len(due) > _TOLD_MAX:
                _log.warning("many policies are hidden by other records", policies=len(due))
            for place, key in enumerate(due[:REPAIRS_MAX]):
                if not await self._put_again(key, is_told=place < _TOLD_MAX):
                    break  # what is not mended now is at the next look

    async def _put_again(self, key: str, *, is_told: bool) -> bool:
        """Make what counts stand last; False where the table takes nothing now."""
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
        if is_told:
            _log.info("wrote a policy again that another record would have hidden", key=shown(key))
        return True

    def _patience(self, key: str) -> int:
        """At how many looks a misplaced key is left to those who are nearer to it."""
        known = self._ledger.get(key)
        writers = {self._ledger.misplaced[key].writer, known.writer if known else ""}
        if self._writer in writers:
            return 1
        return 2 + zlib.crc32(self._writer.encode()) % _BYSTANDERS_LOOKS
