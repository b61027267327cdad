"""A keyed hash of every message of the embedded broker, which itself accepts every process of the machine.

Law: `opened` returns exactly the payload that a holder of the secret sealed for the same topic and key; for
anything else None. An exchange's message also has to be fresh, so that a recorded message cannot be used
later. A table's record may be old, because the table is persistent. The limits of the protection are in
`docs/decisions/0020-the-embedded-broker-is-sealed.md`.
How: keyed BLAKE2b of 16 bytes over topic, key, time of sealing and payload, written before the
payload with that time. The clock is the machine's monotonic one, which all its processes share.
The secret is a file of the broker's folder that only its user can read (`embedded_folder`).
"""

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rgd.ports.exchange import ExchangeDown

#: Older messages of an exchange are refused; also the bound on differences between clocks.
AGE_NS_MAX: Final = 10_000_000_000
SECRET_BYTES: Final = 32
_TAG_BYTES: Final = 16
_STAMP_BYTES: Final = 8
#: The bytes that a seal adds to a payload.
SEAL_BYTES: Final = _TAG_BYTES + _STAMP_BYTES

#: Monotonic nanoseconds with the same meaning in all processes of this machine.
Clock = Callable[[], int]


@dataclass(frozen=True, slots=True)
class SealSettings:
    """The file of the secret; read again for each session."""

    file: Path
    clock: Clock


class Seal:
    """Seals and opens the messages of one topic; from any thread.

    Args:
        secret: the members' shared secret.
        topic: its full name.
        clock: returns the time of sealing.
        must_be_fresh: whether a message older than `AGE_NS_MAX` is refused.
    """

    def __init__(self, secret: bytes, topic: str, clock: Clock, *, must_be_fresh: bool) -> None:
        self._begun = hashlib.blake2b(digest_size=_TAG_BYTES, key=secret)
        self._begun.update(_with_length(topic))
        self._clock = clock
        self._must_be_fresh = must_be_fresh

    def sealed(self, payload: bytes, key: str) -> bytes:
        """The sealed form of a payload."""
        stamp = self._clock().to_bytes(_STAMP_BYTES, "big")
        return self._tag(stamp, payload, key) + stamp + payload

    def opened(self, sealed: bytes, key: str) -> bytes | None:
        """The payload; None if the seal is invalid or too old."""
        tag, stamp = sealed[:_TAG_BYTES], sealed[_TAG_BYTES:SEAL_BYTES]
        payload = sealed[SEAL_BYTES:]
        if not hmac.compare_digest(tag, self._tag(stamp, payload, key)):
            return None
        age_ns = abs(self._clock() - int.from_bytes(stamp, "big"))
        return None if self._must_be_fresh and age_ns > AGE_NS_MAX else payload

    def _tag(self, stamp: bytes, payload: bytes, key: str) -> bytes:
        digest = self._begun.copy()
        digest.update(_with_length(key) + stamp)
        digest.update(payload)
        return digest.digest()


def seal_of(settings: SealSettings, topic: str, *, must_be_fresh: bool) -> Seal:
    """The seal for a topic, with the current secret.

    Raises:
        ExchangeDown: there is no secret.
    """
    try:
        secret = settings.file.read_bytes()
    except OSError as exc:
        raise ExchangeDown(
            f"{settings.file}: {exc.strerror}; the daemon that runs the embedded broker makes it, and all "
            "daemons that share the folder run as one user and one version"
        ) from exc
    if len(secret) != SECRET_BYTES:
        raise ExchangeDown(
            f"{settings.file}: expected {SECRET_BYTES} bytes; delete it while no daemon runs"
        )
    return Seal(secret, topic, settings.clock, must_be_fresh=must_be_fresh)


def _with_length(text: str) -> bytes:
    encoded = text.encode()
    return len(encoded).to_bytes(4, "big") + encoded
