"""What a token's digest is, and which hosts only this machine reaches.

Not covered: what a caller may do with a scope (tests/integration/http), and the files in which tokens
and addresses stand (tests/unit/config).
"""

import hashlib

import pytest

from rgd.ports.door import digest_of, is_loopback


def test_a_tokens_digest_is_its_sha256_as_people_compute_it() -> None:
    assert digest_of("s3cret-token") == hashlib.sha256(b"s3cret-token").digest()


def test_what_is_no_text_has_a_digest_too() -> None:
    assert digest_of("\udcff") == hashlib.sha256(b"\xff").digest()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost"])
def test_only_this_machine_reaches_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", "::", "", "10.0.0.1", "example.org", "localhost.example.org", "127.0.0.1.nip.io"],
)
def test_others_reach_the_rest(host: str) -> None:
    assert not is_loopback(host)
