"""Notices that the files with rgd's credentials for Pulsar changed since a session was opened with them.

Law: files are looked at once in `LOOK_S` at most, in a thread, because a mounted secret may hang; a look that does is
waited for `PATIENCE_S` at a time, so that a lost session is noticed meanwhile. Each change is due once:
where it is of no use, the session goes on until the files change again, or until it is dead and replaced anyway. Without
files nothing is ever due.
How: by what `stat` says of each file (`rgd.config.plain_files.fingerprint`), so a link to another file counts too.
`pulsar` and `pulsar_table` open the other session, each for its own side.
"""

import asyncio
from typing import Final

from rgd.adapters.exchange.pulsar_client import PulsarSettings
from rgd.config.plain_files import Fingerprint, fingerprint

#: Time between two looks at the files.
LOOK_S: Final = 1.0
#: Longest wait of a caller for a look.
PATIENCE_S: Final = 2.0


class CredentialWatch:
    """Decides when to open another session because of changed files.

    Args:
        settings: name the files.
    """

    def __init__(self, settings: PulsarSettings) -> None:
        self._files = settings.credential_files
        self._look_at_s = 0.0
        #: The look that is not back yet.
        self._look: asyncio.Future[Fingerprint] | None = None
        #: The files that were due last.
        self._tried: Fingerprint = ()

    async def is_due(self, used: Fingerprint, now_s: float) -> bool:
        """Whether another session should be opened now.

        Args:
            used: the files with which the present session was opened.
            now_s: of any monotonic clock, always the same one.
        """
        if self._look is None:
            if not self._files or now_s < self._look_at_s:
                return False
            self._look_at_s = now_s + LOOK_S
            loop = asyncio.get_running_loop()
            self._look = loop.run_in_executor(None, fingerprint, self._files)
        await asyncio.wait({self._look}, timeout=PATIENCE_S)
        if not self._look.done():
            return False
        look, self._look = self._look, None
        seen = look.result()
        # Files that are missing are between two versions, and an attempt without them is of no use.
        if seen in (used, self._tried) or None in seen:
            return False
        self._tried = seen
        return True
