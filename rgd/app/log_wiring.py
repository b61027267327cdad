"""Builds what surrounds the usage log out of settings: its tier and its readers' positions."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from rgd.adapters.usagelog.cursors import Cursors, CursorSettings
from rgd.adapters.usagelog.files import is_written
from rgd.adapters.usagelog.recovery import recover_unless_written
from rgd.adapters.usagelog.retention import Limits
from rgd.adapters.usagelog.tiering import TierParts, TierSettings, Uploader, closed_on_disk
from rgd.adapters.usagelog.writer import SegmentedLog
from rgd.app.clock import SystemClock
from rgd.app.log_keeping import LogKeeper, tell_tier
from rgd.app.log_reading import LogPlace
from rgd.backoff import Backoff
from rgd.config.log_settings import LogSettings
from rgd.config.settings import Settings
from rgd.errors import ConfigError, Fault
from rgd.storage.manifest import ClosedSegment
from rgd.storage.objects import Objects, patient

#: Between two tries of a tier that fails.
FIRST_PAUSE_S: Final = 1.0
PAUSE_MAX_S: Final = 60.0
#: Of one request of a read, which moves 4 MiB at most; an upload's may take longer.
READ_TIMEOUT_S: Final = 10.0

_MS_PER_S: Final = 1000


def log_keeper(
    settings: Settings, folder: Path, log: SegmentedLog, clock: SystemClock
) -> LogKeeper:
    """Put it together; nothing is opened yet.

    Raises:
        ConfigError: the log's folder cannot be used.
        Unavailable: the tier needs what is not installed.
    """
    log_settings = settings.log
    place = LogPlace(
        folder,
        log_settings.name,
        settings.broker.name,
        exposes_metadata=log_settings.exposingBrokerEntryMetadataToClientEnabled,
    )
    holding = CursorSettings(
        hold_s=log_settings.cursor_hold_s, hold_bytes=log_settings.cursor_hold_bytes
    )
    uploader = None
    if log_settings.tier_url is not None:
        tier, url = tier_settings(settings), log_settings.tier_url
        try:
            uploader = _uploader(folder, Objects(url), tier, clock, lambda: log.closed)
        except OSError as error:
            why = f"expected a folder that can be written: {error.strerror}"
            raise ConfigError(Fault(str(folder), "log.dir", why)) from error
    return LogKeeper(place, log, Cursors(folder, holding, clock.now), clock, uploader)


def tier_settings(settings: Settings) -> TierSettings:
    """The uploader's settings."""
    log_settings = settings.log
    return TierSettings(
        name=log_settings.name,
        bytes_per_s=log_settings.tier_bytes_per_s or None,
        local_s=log_settings.tier_local_s,
        delete_delay_s=log_settings.tier_delete_delay_s,
        look_every_s=log_settings.tier_look_s,
        # Half is left to what ends before it.
        stop_s=settings.shutdown_timeout_ms / _MS_PER_S / 2,
        limits=log_limits(log_settings),
        gap_max_ms=round(log_settings.segment_age_s * _MS_PER_S),
    )


def log_limits(log: LogSettings) -> Limits:
    """What is kept of a log."""
    return Limits(
        local_bytes=log.local_bytes,
        retention_ms=round(log.retention_s * _MS_PER_S),
        retention_bytes=log.retention_bytes or None,
    )


def lone_uploader(folder: Path, tier_url: str, settings: TierSettings) -> Uploader:
    """An uploader of a log that this process does not write.

    Raises:
        ValueError: `tier_url` is none.
        OSError: the log's end cannot be mended, or what is known of the tier cannot be read beside it.
        Unavailable: the tier needs what is not installed.
    """

    def closed() -> list[ClosedSegment]:
        return closed_on_disk(folder, with_last=not is_written(folder))

    uploader = _uploader(folder, patient(tier_url), settings, SystemClock(), closed)
    # Behind all that refuses the tier, so that who is refused has changed no log.
    recover_unless_written(folder)
    return uploader


def _uploader(
    folder: Path,
    objects: Objects,
    settings: TierSettings,
    clock: SystemClock,
    closed: Callable[[], Sequence[ClosedSegment]],
) -> Uploader:
    parts = TierParts(
        objects=objects,
        reading=Objects(objects.place, timeout_s=READ_TIMEOUT_S, connect_timeout_s=READ_TIMEOUT_S),
        closed=closed,
        clock=clock.now,
        backoff=Backoff.with_own_dice(first_s=FIRST_PAUSE_S, pause_s_max=PAUSE_MAX_S),
        on_event=tell_tier,
    )
    return Uploader(folder, parts, settings, new_log=f"{clock.unix_ms():014}")
