"""What the door refuses to be told. Not covered: reading settings from files and environment."""

from pathlib import Path

import pytest

from rgd.adapters.http.settings import HttpSettings, check
from rgd.errors import ConfigError

PEM = Path("cert.pem")


def test_listening_beyond_loopback_without_tokens_is_refused_with_the_remedy() -> None:
    with pytest.raises(ConfigError) as caught:
        check(HttpSettings(host="0.0.0.0"))

    (fault,) = caught.value.faults
    assert fault.key == "http.listen"
    for remedy in ("127.0.0.1", "http.tokens_file", "--insecure"):
        assert remedy in fault.expected


def test_tls_alone_does_not_replace_tokens() -> None:
    with pytest.raises(ConfigError, match=r"http\.listen"):
        check(HttpSettings(host="0.0.0.0", tls_cert=PEM, tls_key=PEM))
