"""When changed credential files are due for another session."""

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from rgd.adapters.exchange import credential_watch
from rgd.adapters.exchange.credential_watch import LOOK_S, CredentialWatch
from rgd.adapters.exchange.pulsar_client import PulsarSettings
from rgd.config.plain_files import Fingerprint, fingerprint


@pytest.fixture
def token(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text("first")
    return file


def rewrite(file: Path, text: str) -> None:
    file.write_text(text)


def remove(file: Path) -> None:
    file.unlink()


def watch_of(token: Path | None) -> CredentialWatch:
    return CredentialWatch(PulsarSettings(token_file=token))


class Clock:
    now_s = 1000.0

    async def next_look(self, watch: CredentialWatch, used: Fingerprint) -> bool:
        self.now_s += LOOK_S
        return await watch.is_due(used, self.now_s)


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def test_without_files_nothing_is_due(clock: Clock) -> None:
    assert not await clock.next_look(watch_of(None), ())


async def test_a_change_is_due_and_the_same_file_is_not(token: Path, clock: Clock) -> None:
    watch, used = watch_of(token), fingerprint([token])
    assert not await clock.next_look(watch, used)
    rewrite(token, "the second")
    assert not await watch.is_due(used, clock.now_s), "it looks once a second"
    assert await clock.next_look(watch, used)
    assert not await clock.next_look(watch, fingerprint([token]))


async def test_a_file_that_is_missing_for_a_moment_is_not_due(token: Path, clock: Clock) -> None:
    watch, used = watch_of(token), fingerprint([token])
    remove(token)
    assert not await clock.next_look(watch, used)
    # Of another size: all else may be the same within a tick of the file system's clock.
    rewrite(token, "first again")
    assert await clock.next_look(watch, used)


async def test_each_change_is_due_once(token: Path, clock: Clock) -> None:
    watch, used = watch_of(token), fingerprint([token])
    rewrite(token, "the second")
    assert await clock.next_look(watch, used)
    assert not await clock.next_look(watch, used)
    rewrite(token, "and a third one")
    assert await clock.next_look(watch, used)


async def test_a_look_that_hangs_is_not_waited_for(
    token: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch, used, is_back = watch_of(token), fingerprint([token]), threading.Event()

    def hanging(files: Sequence[Path]) -> Fingerprint:
        is_back.wait()
        return fingerprint(files)

    monkeypatch.setattr(credential_watch, "fingerprint", hanging)
    monkeypatch.setattr(credential_watch, "PATIENCE_S", 0)
    rewrite(token, "the second")
    assert not await clock.next_look(watch, used)
    assert not await clock.next_look(watch, used)
    is_back.set()
    monkeypatch.setattr(credential_watch, "PATIENCE_S", 60)
    assert await watch.is_due(used, clock.now_s), "the same look"
