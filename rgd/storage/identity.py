"""Which tier a place holds: one small object at its root, created by the first that uploads and never changed.

    PLACE/rgd-tier.json      {"version": 1, "identity": "<32 hex digits>"}

Law: a place without this object, or with another identity, is not the tier that a log was uploaded to, even
if it can be written: a mount point without its mount and an emptied bucket look like an empty tier. So
whoever remembers an identity compares it before anything is created, dropped or deleted.
"""

import json
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from rgd.storage.errors import ObjectMissing, TierChanged
from rgd.storage.manifest import VERSION, read_versioned
from rgd.storage.objects import Objects

MARKER: Final = "rgd-tier.json"
#: Largest marker that is read, in bytes.
MARKER_BYTES_MAX: Final = 1024
IDENTITY_BYTES: Final = 16

#: Of a place that does not hold the tier that is remembered.
REMEDY: Final = (
    "Mount or restore it; if it is gone for good, move tier-*.json beside the log away, "
    "so that the log continues there under another number"
)

Identity = Annotated[str, Meta(pattern=r"^[0-9a-f]{32}\Z")]


class _Marker(msgspec.Struct):
    identity: Identity


def read_identity(objects: Objects) -> str | None:
    """The identity of the tier at a place; None: it has none yet.

    Raises:
        TierDamaged: its marker cannot be understood.
        TierError: it cannot be read.
    """
    try:
        data = objects.read_range(MARKER, 0, MARKER_BYTES_MAX)
    except ObjectMissing:
        return None
    if not data:
        return None
    return read_versioned(_Marker, data, f"{objects.place}: {MARKER}").identity


def claim_identity(objects: Objects, fresh: str) -> str:
    """The identity of the tier at a place: the one that is there, otherwise `fresh`, which is stored.

    Raises:
        TierDamaged: its marker cannot be understood.
        TierError: it cannot be read or stored.
    """
    data = json.dumps({"version": VERSION, "identity": fresh}).encode() + b"\n"
    if objects.create(MARKER, data):
        return fresh
    found = read_identity(objects)
    if found is None:
        # Empty: a crash came between its creation and its first byte.
        objects.replace(MARKER, data)
    return found or fresh


def require_identity(objects: Objects, expected: str) -> None:
    """Make sure that a place still holds the tier of this identity.

    Raises:
        TierChanged: it does not.
        TierError: it cannot be told.
    """
    found = read_identity(objects)
    if found != expected:
        what = f"{MARKER} is missing" if found is None else f"{MARKER} has the identity {found}"
        raise TierChanged(
            f"{objects.place}: expected the tier {expected} that this log was uploaded to, but {what}; "
            f"nothing is uploaded, dropped or deleted. {REMEDY}"
        )
