"""What is refused of the files with tokens and keys before a daemon starts."""

from pathlib import Path

import pytest

from rgd.config.credential_files import check_credential_files
from rgd.config.faults import Faults
from rgd.config.load import load_settings
from rgd.config.settings import Settings
from rgd.errors import ConfigError

URL = "pulsar+ssl://pulsar:6651"


def settings(**files: Path) -> Settings:
    named = {f"exchange.{name}": str(path) for name, path in files.items()}
    return load_settings(None, {}, {"exchange.url": URL, **named})


def file(path: Path, mode: int = 0o600) -> Path:
    path.write_text("secret")
    path.chmod(mode)
    return path


def test_files_that_only_we_can_read_are_fine(tmp_path: Path) -> None:
    token, key = file(tmp_path / "token"), file(tmp_path / "key", 0o440)
    cert = file(tmp_path / "cert", 0o644)
    check_credential_files(
        settings(token_file=token, tls_key=key, tls_cert=cert, tls_ca=cert), Faults("here")
    )


def test_every_fault_is_reported_with_its_setting(tmp_path: Path) -> None:
    found = settings(
        token_file=file(tmp_path / "token", 0o644),
        tls_key=file(tmp_path / "key", 0o602),
        tls_cert=tmp_path,
        tls_ca=tmp_path / "nothing",
    )
    with pytest.raises(ConfigError) as raised:
        check_credential_files(found, Faults("here"))
    expected = {fault.key: fault.expected for fault in raised.value.faults}
    assert set(expected) == {
        "exchange.token_file",
        "exchange.tls_key",
        "exchange.tls_cert",
        "exchange.tls_ca",
    }
    assert "chmod o-rwx" in expected["exchange.token_file"]
    assert "chmod o-rwx" in expected["exchange.tls_key"]
    assert "regular file" in expected["exchange.tls_cert"]
    assert "No such file" in expected["exchange.tls_ca"]
    assert not any("secret" in words for words in expected.values())
