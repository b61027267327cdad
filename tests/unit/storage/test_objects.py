"""Objects of a folder and of a bucket: created once, read back, listed, deleted; errors of our own.

Not covered: outages and slow links (tests/integration/tier).
"""

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from rgd.storage.errors import ObjectMissing, TierDown, TierError
from rgd.storage.objects import Objects, canonical, folder_of, patient

NAME = "usage/broker%2F1/00000000000000000000.log"


def test_an_object_is_created_once(tier_place: str) -> None:
    objects = Objects(tier_place)
    assert objects.create(NAME, b"first") is True
    assert objects.create(NAME, b"second") is False
    assert objects.read(NAME) == b"first"
    assert objects.names("usage") == {NAME: 5}


def test_ranges_end_where_the_object_ends(tier_place: str) -> None:
    objects = Objects(tier_place)
    objects.create(NAME, bytes(range(100)))
    assert objects.read_range(NAME, 90, 20) == bytes(range(90, 100))
    assert objects.read_range(NAME, 100, 20) == b""
    assert objects.size(NAME) == 100
    objects.create("usage/empty.idx", b"")
    assert objects.read_range("usage/empty.idx", 0, 20) == b""


def test_what_is_not_there_is_missing_and_deleted_already(tier_place: str) -> None:
    objects = Objects(tier_place)
    with pytest.raises(ObjectMissing):
        objects.read(NAME)
    objects.delete(NAME)
    objects.create(NAME, b"x")
    objects.delete(NAME)
    assert objects.names("") == {}


def test_a_prefix_is_whole_parts_of_names(tier_place: str) -> None:
    objects = Objects(tier_place)
    for name in ("a/1", "a/b/2", "ab/3"):
        objects.create(name, b"x")
    assert set(objects.names("a")) == {"a/1", "a/b/2"}


def test_a_folder_that_is_no_folder_is_a_tier_that_is_down(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(TierDown, match="file"):
        Objects(str(tmp_path / "file" / "tier")).create("a", b"")


@pytest.mark.parametrize("place", ["", "ftp://host/x", "s3://", "s3://b?x=1", "file://host/x"])
def test_other_places_are_refused(place: str) -> None:
    with pytest.raises(ValueError, match="expected a folder"):
        folder_of(place)


@pytest.mark.parametrize("url", ["", "nonsense"])
def test_an_address_at_which_obstore_panics_is_an_error(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.setenv(name, "any")
    with pytest.raises(TierError, match="check AWS_ENDPOINT_URL"):
        Objects("s3://bucket").names("")


def test_places_are_paths_or_urls() -> None:
    assert folder_of("some/where") == Path("some/where")
    assert folder_of("file:///some/wh%20ere") == Path("/some/wh ere")
    assert folder_of("s3://bucket/prefix") is None


def test_one_place_has_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = ("tier", "./tier/", f"{tmp_path}/tier", f"file://{tmp_path}/tier")
    assert {canonical(name) for name in names} == {str(tmp_path.resolve() / "tier")}
    assert canonical("s3://bucket/below/") == canonical("s3://bucket/below")


class _BusyAtFirst(BaseHTTPRequestHandler):
    """A bucket that is busy for two requests of three."""

    asked = 0

    def do_GET(self) -> None:
        type(self).asked += 1
        is_busy = self.asked % 3 != 0
        data = b"" if is_busy else b"segment"
        self.send_response(503 if is_busy else 200)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", '"1"')
        self.send_header("Last-Modified", "Wed, 25 Nov 2026 19:00:00 GMT")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


def test_a_busy_bucket_is_asked_again_by_who_is_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    with HTTPServer(("127.0.0.1", 0), _BusyAtFirst) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
            monkeypatch.setenv(name, "any")
        assert patient("s3://bucket").read("one") == b"segment"
        with pytest.raises(TierDown):
            Objects("s3://bucket").read("one")
        server.shutdown()
