"""Files with tokens and certificates: what is taken, and what an error shows."""

import os
from pathlib import Path

import pytest

from rgd.adapters.exchange.credentials import check_pem, read_token
from rgd.ports.exchange import ExchangeDown

SETTING = "exchange.token_file"


def test_a_token_is_read_without_its_line_break_and_again_each_time(tmp_path: Path) -> None:
    file = tmp_path / "token"
    for token in ("first.of-all", "second"):
        file.write_text(f"{token}\n")
        assert read_token(file, SETTING) == token


@pytest.mark.parametrize(
    "content", [b"", b" \n", b"two\nlines", b"two words", b"\xff\xfesecret", b"secret\x00"]
)
def test_what_is_no_token_is_refused_and_not_shown(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(ExchangeDown, match=r"exchange\.token_file: .*expected one token") as raised:
        read_token(file, SETTING)
    assert "secret" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


def test_a_missing_file_a_folder_and_a_fifo_are_reported_at_once(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path in (tmp_path / "nothing", tmp_path, fifo):
        with pytest.raises(ExchangeDown, match=r"exchange\.token_file"):
            read_token(path, SETTING)
        with pytest.raises(ExchangeDown, match=r"exchange\.tls_ca: .*PEM"):
            check_pem(path, "exchange.tls_ca")
