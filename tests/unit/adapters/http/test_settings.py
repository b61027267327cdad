"""What the door refuses to be told. Not covered: reading settings from files and environment."""

from pathlib import Path

import pytest

from rgd.adapters.http.settings import HttpSettings, check
from rgd.adapters.http.tokens import Tokens
from rgd.errors import ConfigError
from rgd.ports.door import Scope, digest_of

TOKENS = Tokens({digest_of("secret"): frozenset({Scope.READ})})
PEM = Path("cert.pem")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1", "localhost"])
def test_loopback_needs_no_tokens(host: str) -> None:
    check(HttpSettings(host=host))


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", "::", "", "10.0.0.1", "example.org", "localhost.example.org", "127.0.0.1.nip.io"],
)
def test_listening_beyond_loopback_without_tokens_is_refused_with_the_remedy(host: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check(HttpSettings(host=host))

    (fault,) = caught.value.faults
    assert fault.key == "http.listen"
    for remedy in ("127.0.0.1", "http.tokens_file", "--insecure"):
        assert remedy in fault.expected


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(HttpSettings(host="0.0.0.0", tokens=TOKENS), id="tokens"),
        pytest.param(HttpSettings(host="0.0.0.0", insecure=True), id="insecure"),
        pytest.param(HttpSettings(tls_cert=PEM, tls_key=PEM), id="TLS on loopback"),
    ],
)
def test_what_is_secured_or_wanted_is_allowed(settings: HttpSettings) -> None:
    check(settings)


def test_tls_alone_does_not_replace_tokens() -> None:
    with pytest.raises(ConfigError, match=r"http\.listen"):
        check(HttpSettings(host="0.0.0.0", tls_cert=PEM, tls_key=PEM))


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        pytest.param(HttpSettings(tls_cert=PEM), "http.tls_key", id="no key"),
        pytest.param(HttpSettings(tls_key=PEM), "http.tls_cert", id="no certificate"),
        pytest.param(HttpSettings(port=65536), "http.listen", id="port too high"),
        pytest.param(HttpSettings(port=-1), "http.listen", id="port below zero"),
        pytest.param(HttpSettings(batch_max=0), "http.batch_max", id="no batch"),
        pytest.param(HttpSettings(body_max_bytes=0), "http.body_max_bytes", id="no body"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(settings: HttpSettings, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check(settings)

    assert [fault.key for fault in caught.value.faults] == [key]


def test_every_fault_is_told_at_once() -> None:
    settings = HttpSettings(host="0.0.0.0", port=70_000, tls_key=PEM, batch_max=0)

    with pytest.raises(ConfigError) as caught:
        check(settings)

    assert [fault.key for fault in caught.value.faults] == [
        "http.listen",
        "http.listen",
        "http.tls_cert",
        "http.batch_max",
    ]
