"""What is missing is said before Spark is started.

Not covered: Spark itself (tests/integration/spark).
"""

import importlib.util
import socket
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from rgd.analysis import report, session
from rgd.analysis.asked import Asked, TimeRange
from rgd.analysis.errors import JavaMissing, NothingLogged, SparkMissing
from rgd.analysis.jobs import Results
from rgd.analysis.session import require_java, require_master, require_spark
from rgd.errors import ConfigError, Unavailable
from tests.support.cases import cases
from tests.support.log_maker import Usage, log_of


@pytest.fixture
def java_that_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """A JAVA_HOME whose `java -version` says something."""

    def make(said: str) -> Path:
        java = tmp_path / "jdk" / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
        java.chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
        return java

    return make


@pytest.mark.parametrize("said", ['openjdk version "17.0.15" 2025-04-15', 'java version "21"'])
def test_a_java_that_is_new_enough_is_taken(
    java_that_says: Callable[[str], Path], said: str
) -> None:
    java = java_that_says(said)
    assert require_java() == java


@cases(
    "said, told",
    {
        "old": ('java version "1.8.0_402"', "is version 8"),
        "macOS stub": ("The operation couldn't be completed", "not a Java that runs"),
    },
)
def test_a_java_that_will_not_do_is_refused_with_the_remedy(
    java_that_says: Callable[[str], Path], said: str, told: str
) -> None:
    java_that_says(said.replace("'", ""))

    with pytest.raises(JavaMissing, match=f"{told}.*install Java 17 or newer"):
        require_java()


def test_no_java_at_all_stops_a_report_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    log_of(tmp_path / "log", "broker-1", (1, Usage("gold", 1, quota=1)))

    with pytest.raises(JavaMissing, match="none was found; install Java 17") as missing:
        report.run_report([str(tmp_path / "log")], tmp_path / "out")

    assert isinstance(missing.value, Unavailable)
    assert not (tmp_path / "out").exists()


def test_an_install_without_the_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_spec(name: str) -> ModuleSpec | None:
        return None if name == "pyspark" else importlib.util.find_spec(name)

    monkeypatch.setattr(session, "find_spec", find_spec)

    with pytest.raises(SparkMissing, match=r"pyspark not installed: .*pip install '\.\[report\]'"):
        require_spark()


@pytest.mark.parametrize("window_s", [0.0, -1.0, float("nan"), float("inf")])
def test_a_window_that_is_no_time_is_refused(tmp_path: Path, window_s: float) -> None:
    log_of(tmp_path / "log", "broker-1", (1, Usage("gold", 1, quota=1)))

    with pytest.raises(ConfigError, match="--window-s: expected a number of seconds"):
        report.run_report([str(tmp_path / "log")], tmp_path / "out", window_s=window_s)


def test_a_master_that_is_away_is_noticed_before_spark_starts() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        master = f"spark://127.0.0.1:{closed.getsockname()[1]}"

        with pytest.raises(SparkMissing, match=r"no Spark master answers .*correct --master"):
            require_master(master)


def test_one_of_several_masters_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as there:
        require_master(f"spark://127.0.0.1:1,127.0.0.1:{there.getsockname()[1]}")


@cases(
    "rounds, round_ms, expected",
    {
        "nothing": (0, 1000, 1000),
        "a round is enough": (2000, 1000, 1000),
        "two rounds": (2001, 1000, 2000),
        "a day": (86_400, 1000, 44_000),
        "a day of long rounds": (8_640, 10_000, 50_000),
        "short rounds": (36_000, 100, 2000),
    },
)
def test_a_window_is_as_many_rounds_as_leave_2000_windows(
    rounds: int, round_ms: float, expected: int
) -> None:
    assert report.window_length_ms(None, round_ms, rounds) == expected
    assert report.window_length_ms(4, round_ms, rounds) == 4000
    with pytest.raises(ConfigError, match=r"expected at least [\d.]+ s, because a round lasts"):
        report.window_length_ms(0.001, round_ms, rounds)


def test_a_range_in_which_nothing_was_used_is_refused() -> None:
    nothing = Results([], {}, [], None)
    with pytest.raises(NothingLogged, match="no rows between"):
        report.check_usage(nothing, Asked(TimeRange(1, 2)))


def test_what_py4j_writes_after_ctrl_c_goes_nowhere() -> None:
    script = """
import logging
from rgd.analysis.session import _unheard

with _unheard():
    logging.error("KeyboardInterrupt while sending command.")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stderr == b""
