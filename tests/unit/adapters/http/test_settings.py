"""What the door refuses to be told. Not covered: reading settings from files and environment."""

from pathlib import Path

import pytest

from rgd.adapters.http.settings import HttpSettings, check
from rgd.errors import ConfigError

PEM = Path("cert.pem")


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        (HttpSettings(host="0.0.0.0"), "http.listen"),
        (HttpSettings(probe_address=("0.0.0.0", 7790)), "http.probe_listen"),
    ],
)
def test_listening_beyond_loopback_without_tokens_is_refused_with_the_remedy(
    settings: HttpSettings, key: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        check(settings)

    (fault,) = caught.value.faults
    assert fault.key == key
    for remedy in ("127.0.0.1", "http.tokens_file", "--insecure"):
        assert remedy in fault.expected


def test_tls_alone_does_not_replace_tokens() -> None:
    with pytest.raises(ConfigError, match=r"http\.listen"):
        check(HttpSettings(host="0.0.0.0", tls_cert=PEM, tls_key=PEM))
