"""YAML as rgd reads it: plain values by YAML 1.2's rules, keys as text, within limits.

The mistakes, each with its wording, are files under tests/data/bad_config; here is what reads well,
and the limits that would make a file too large to keep in the tree.
"""

import math
import os
import re
from pathlib import Path

import pytest

from rgd.config import document
from rgd.config.document import parse_document, read_document
from rgd.config.faults import FAULTS_MAX, Faults, nearest
from rgd.errors import ConfigError


def value_of(text: str) -> object:
    parsed = parse_document(text.encode(), "test.yaml")
    assert parsed.faults.found == []
    return parsed.value


def fault_of(content: bytes) -> str:
    with pytest.raises(ConfigError) as raised:
        parse_document(content, "test.yaml")
    return str(raised.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5e6", 5e6),
        ("1.5e-3", 0.0015),
        (".5", 0.5),
        ("-3", -3),
        ("+3", 3),
        ("007", 7),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("0x10", "0x10"),
        ("2026-11-21", "2026-11-21"),
        ("yes", "yes"),
        ("no", "no"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("# nothing", None),
        ("---", None),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("'5'", "5"),
        ('"true"', "true"),
        ("e5", "e5"),
        ("-", [None]),
        ("9" * 101, "9" * 101),
    ],
)
def test_a_scalar_has_its_value_of_yaml_1_2(text: str, value: object) -> None:
    read = value_of(text)
    assert read == value
    assert type(read) is type(value)


def test_not_a_number_is_read_as_such() -> None:
    assert math.isnan(float(str(value_of(".nan"))))


def test_keys_are_the_text_that_stands_there() -> None:
    assert value_of("{no: 1, 2026: 2, 1.50: 3, true: 4, '': 5, ~: 6}") == {
        "no": 1,
        "2026": 2,
        "1.50": 3,
        "true": 4,
        "": 5,
        "~": 6,
    }


def test_a_repeated_key_is_reported_and_the_first_value_stays() -> None:
    parsed = parse_document(b"{a: {b: 1, b: {c: 2}}, a: 3}", "test.yaml")
    assert parsed.value == {"a": {"b": 1}}
    assert [fault.key for fault in parsed.faults.found] == ["a.b", "a"]


def test_an_anchor_may_be_defined_again() -> None:
    assert value_of("[&x 1, *x, &x 2, *x]") == [1, 1, 2, 2]


def test_a_list_item_has_its_place_in_the_key() -> None:
    parsed = parse_document(b"{a: [{b: 1}, {b: 1, b: 2}]}", "test.yaml")
    assert [fault.key for fault in parsed.faults.found] == ["a.1.b"]


def test_a_byte_order_mark_is_no_part_of_the_first_key() -> None:
    assert parse_document(b"\xef\xbb\xbfgroups: {}", "test.yaml").value == {"groups": {}}


def test_a_file_above_the_size_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document, "FILE_BYTES_MAX", 100)
    path = tmp_path / "groups.yaml"
    path.write_bytes(b"#" * 100)
    assert read_document(path).value is None
    path.write_bytes(b"#" * 101)
    with pytest.raises(ConfigError, match="expected a file of at most 100 bytes"):
        read_document(path)


def test_an_alias_counts_as_what_it_stands_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "NODES_MAX", 12)
    twelve = parse_document(b"[&x [1, 2, 3], *x, 1, 2, 3]", "test.yaml")
    assert twelve.faults.found == []
    assert "at most 12 values" in fault_of(b"[&x [1, 2, 3], *x, 1, 2, 3, 4]")


@pytest.mark.parametrize(
    "content",
    [b"a: \x00", b"\xff\xfe", b"%YAML 9.9\n", b"a: b: c", b"[" * 5000, b"&" * 100, b"{*a : 1}"],
)
def test_what_is_no_yaml_is_one_clear_line(content: bytes) -> None:
    assert re.match(r"test\.yaml(:\d+)?: ", fault_of(content))
    assert "\n" not in fault_of(content)


def test_faults_beyond_the_limit_are_counted() -> None:
    faults = Faults("test.yaml")
    for number in range(FAULTS_MAX + 7):
        faults.add(str(number), "wrong")
    listed = faults.listed()
    assert len(listed) == FAULTS_MAX + 1
    assert listed[-1].expected == "and 7 more faults"


def test_the_nearest_name_is_found_unless_there_are_too_many_to_compare() -> None:
    assert nearest("gld", ["silver", "gold"]) == "gold"
    assert nearest("processes", ["name", "weight"]) is None
    assert nearest("x", []) is None
    assert nearest("gold", [str(number) for number in range(5000)]) is None


def test_what_is_no_regular_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "device").symlink_to("/dev/zero")
    for name, kind in (("", "directory"), ("fifo", "FIFO"), ("device", "device")):
        with pytest.raises(ConfigError, match=f"it is a {kind}, not a regular file"):
            read_document(tmp_path / name)
