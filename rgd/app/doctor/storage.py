"""The tier of the usage log: whether it takes an object."""

import secrets
from typing import Final

from rgd.app.doctor.findings import CHECK_S, Report
from rgd.config.settings import Settings
from rgd.errors import RgdError, Unavailable
from rgd.storage.objects import Objects, folder_of

#: A trial's name, before some digits; no log has such an object.
_TRIAL: Final = "rgd-doctor-"
_REQUEST_S: Final = CHECK_S / 2


def tier(report: Report, settings: Settings) -> None:
    """Make an object and delete it."""
    place = settings.log.tier_url
    if place is None:
        report.ok("no log.tier_url: closed segments stay on this disk")
        return
    folder = folder_of(place)
    if folder is not None and not folder.exists():
        report.warning(f"{folder} is not there: mount it, or the first upload makes it")
        return
    objects = Objects(place, timeout_s=_REQUEST_S, connect_timeout_s=_REQUEST_S)
    name = f"{_TRIAL}{secrets.token_hex(8)}"
    try:
        objects.create(name, b"")
        objects.delete(name)
    except RgdError as error:
        raise Unavailable(
            f"log.tier_url: {error}; check the place, AWS_ENDPOINT_URL and the credentials: "
            "a daemon makes and deletes objects there"
        ) from error
    report.ok(f"{place} takes and deletes objects")
