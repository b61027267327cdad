"""The hash of a groups file, by which daemons compare their policies.

Law: files with the same content have the same hash, on every machine, in every run, whatever their order.
Files that differ have different hashes.

It is the sum of a digest of each policy, so nothing is sorted, and no piece of work grows with the file.
"""

import hashlib
from typing import Final

from rgd.core.policies.records import values_of
from rgd.core.policies.snapshot import PolicySnapshot

_MASK: Final = (1 << 63) - 1


def policies_hash(snapshot: PolicySnapshot) -> int:
    """A hash of a policy snapshot: 1 to 2^63 - 1, the same on every machine and in every run."""
    total = 0
    for key, value in values_of(snapshot):
        # Values are frozen dataclasses of numbers, flags and words, whose text has all of them.
        text = f"{key}\0{value!r}".encode(errors="surrogatepass")
        total += int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
    return (total & _MASK) or 1
