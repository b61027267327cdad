"""Notices that the files with rgd's credentials for Pulsar changed since a session was opened with them.

Law: files are looked at once in `LOOK_S` at most, in a thread, because a mounted secret may hang. An attempt
that fails with changed files is repeated after growing pauses, and at once when they change again. Without files
nothing is ever due.
How: by what `stat` says of each file (`rgd.config.plain_files.fingerprint`), so a link to another file counts too.
`pulsar_lasting` and `pulsar_table` open the other session, each for its own side.
"""

import asyncio
import random
import uuid
from typing import Final

from rgd.adapters.exchange.pulsar_client import PulsarSettings
from rgd.backoff import Backoff
from rgd.config.plain_files import Fingerprint, fingerprint

#: Time between two looks at the files.
LOOK_S: Final = 1.0
#: The first and the longest pause after an attempt that failed, before jitter.
PAUSE_S_FIRST: Final = 1.0
PAUSE_S_MAX: Final = 30.0


class CredentialWatch:
    """Decides when to open another session because of changed files.

    Args:
        settings: name the files.
        dice: jitter of the pauses; from the operating system when None.
    """

    def __init__(self, settings: PulsarSettings, *, dice: random.Random | None = None) -> None:
        self._files = settings.credential_files
        self._backoff = Backoff(
            first_s=PAUSE_S_FIRST,
            pause_s_max=PAUSE_S_MAX,
            dice=dice or random.Random(uuid.uuid4().int),  # noqa: S311 - jitter, no secret
        )
        self._look_at_s = 0.0
        #: The files of the last attempt that failed, and when the next attempt with them is due.
        self._refused: Fingerprint | None = None
        self._again_at_s = 0.0
        #: The files at the last look.
        self._seen: Fingerprint = ()

    async def is_due(self, used: Fingerprint, now_s: float) -> bool:
        """Whether another session should be opened now.

        Args:
            used: the files with which the present session was opened.
            now_s: of any monotonic clock, always the same one.
        """
        if not self._files or now_s < self._look_at_s:
            return False
        self._look_at_s = now_s + LOOK_S
        seen = self._seen = await asyncio.to_thread(fingerprint, self._files)
        # Files that are missing are between two versions, and an attempt without them is of no use.
        if seen == used or None in seen:
            return False
        return seen != self._refused or now_s >= self._again_at_s

    def refused(self, now_s: float) -> bool:
        """An attempt with the files that were due has failed; returns whether it is the first with these."""
        is_first = self._seen != self._refused
        if is_first:
            self._backoff.reset()
        self._refused = self._seen
        self._again_at_s = now_s + self._backoff.next_s()
        return is_first
