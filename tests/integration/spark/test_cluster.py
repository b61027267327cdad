"""Reports on a standalone cluster: a master and two workers on loopback, one of which is killed in the middle.

Not covered: several machines, Kubernetes, YARN.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from rgd.adapters.usagelog.index import index_path, mend
from rgd.storage.manifest import TieredSegment
from rgd.storage.objects import Objects
from rgd.storage.tier import LogTier, checksum_of
from tests.support import components
from tests.support.log_maker import START_MS, LogMaker, Usage

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("cluster")]

#: Of everything here; the machine may be busy.
TIMEOUT_S = 900
LOOPBACK = "127.0.0.1"
#: Enough to be in the middle of for seconds.
SEGMENTS, ROUNDS = 12, 300


@contextmanager
def running(environment: Mapping[str, str], *command: str, until: str) -> Iterator[tuple[str, int]]:
    """One of Spark's own daemons: what the first line that matches says, and the process."""
    import pyspark

    home = Path(pyspark.__file__).parent
    settings = {**environment, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": LOOPBACK}
    settings |= {"SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false"}
    launcher: list[Path | str] = [home / "bin" / "spark-class", *command]
    with subprocess.Popen(launcher, env=settings, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            found = next(
                (match for line in process.stderr if (match := re.search(until, line))), None
            )
            assert found is not None, f"{command} ended with {process.wait()}"
            # What nobody reads would stop it in the end.
            threading.Thread(target=process.stderr.read, daemon=True).start()
            yield found[1], process.pid
        finally:
            process.kill()


@pytest.fixture
def python_without_rgd(tmp_path: Path) -> Path:
    """A Python that has what this one has but for rgd: no .pth file is read, which leaves the wheel's data files."""
    assert Path(sys.base_prefix) != Path(sys.prefix), "rgd's own environment is a virtual one"
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    python = tmp_path / "python"
    base = Path(sys.executable).resolve()
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}:$PYTHONPATH" exec "{base}" "$@"\n')
    python.chmod(0o755)
    done = subprocess.run([python, "-c", "import rgd.version"], cwd=tmp_path, check=False, env={}, stderr=subprocess.PIPE)  # fmt: skip
    assert b"No module named 'rgd" in done.stderr
    return python


@dataclass(frozen=True)
class Cluster:
    """A master's URL, and where each of two workers runs what it is given, by process."""

    url: str
    folders: dict[int, Path]

    def kill_a_worker(self, report: subprocess.Popen[str]) -> None:
        """End a worker and all that it runs, once tasks run on it."""
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            for worker, folder in self.folders.items():
                running = list(processes_in(folder))
                if any("pyspark.daemon" in command for _, command in running):
                    for process in (worker, *(process for process, _ in running)):
                        with suppress(ProcessLookupError):
                            os.kill(process, signal.SIGKILL)
                    assert report.poll() is None, "it had ended before"
                    return
            time.sleep(0.1)  # a look takes some milliseconds, and tasks run for seconds
        raise AssertionError(f"no worker ran a task: {report.communicate()}")


def processes_in(folder: Path) -> Iterator[tuple[int, str]]:
    """Processes whose working directory is in a folder, and their command lines."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (entry / "cwd").resolve().is_relative_to(folder):
                yield int(entry.name), (entry / "cmdline").read_bytes().decode(errors="replace")


@pytest.fixture
def cluster(tmp_path: Path, tier_place: str) -> Generator[Cluster]:
    """The tier's environment is the workers' too."""
    components.java()
    deploy = "org.apache.spark.deploy."
    master = (f"{deploy}master.Master", "--host", LOOPBACK, "--port", "0", "--webui-port", "0")
    worker = (f"{deploy}worker.Worker", "--host", LOOPBACK, "--webui-port", "0", "-c", "1")
    with ExitStack() as stack:
        started = r"Starting Spark master at (spark://\S+)"
        url, _ = stack.enter_context(running(os.environ, *master, until=started))
        folders = {}
        for name in ("work-1", "work-2"):
            limits = ("-m", "1g", "-d", str(tmp_path / name), url)
            registered = running(os.environ, *worker, *limits, until="(Successfully registered)")
            folders[stack.enter_context(registered)[1]] = tmp_path / name
        yield Cluster(url, folders)


def put_segments(maker: LogMaker, tier: LogTier) -> None:
    """A tier of some segments."""
    for number in range(SEGMENTS):
        first = maker.index
        maker.rounds(ROUNDS, Usage("gold", 7, 10, quota=7))
        segment = maker.roll()
        mend(segment)
        data = segment.read_bytes()
        begin_ms = START_MS + 1000 * ROUNDS * number
        times = begin_ms + 1000, begin_ms + 1000 * ROUNDS
        facts = TieredSegment(first, maker.index - 1, *times, len(data), checksum_of(data))
        tier.put(facts, data, index_path(segment).read_bytes())


#: A session that rgd did not start, whose executors have rgd from the wheel.
OWN_SESSION = """\
import sys
from pyspark.sql import SparkSession
from rgd.analysis.report import run_report

SparkSession.builder.getOrCreate()
run_report([sys.argv[1]], sys.argv[2])
"""


def report_by_wheel(
    cluster: Cluster, folder: Path, log: str, out: str, environment: Mapping[str, str]
) -> None:
    """Let spark-submit run a script on the cluster."""
    import pyspark

    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    script = folder / "report.py"
    script.write_text(OWN_SESSION, encoding="utf-8")
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    py_files = wheel.rename(wheel.with_suffix(".zip"))
    done = subprocess.run(
        [submit, "--master", cluster.url, "--py-files", py_files, script, log, out],
        env={**environment, "PYSPARK_DRIVER_PYTHON": sys.executable, "SPARK_LOCAL_IP": LOOPBACK},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("tier_place", ["s3"], indirect=True)
def test_executors_need_no_rgd_and_a_worker_that_is_killed_changes_nothing(
    cluster: Cluster, tier_place: str, python_without_rgd: Path, tmp_path: Path
) -> None:
    """Log and reports are in a bucket, and the machines share nothing else."""
    log = f"{tier_place}/log"
    put_segments(LogMaker(tmp_path / "log", "b1"), LogTier(Objects(log), "usage/b1/1"))
    environment = {**os.environ, "PYSPARK_PYTHON": str(python_without_rgd)}
    outs = [f"{tier_place}/by-wheel", f"{tier_place}/by-zip"]

    report_by_wheel(cluster, tmp_path, log, outs[0], environment)
    with subprocess.Popen(
        [sys.executable, "-m", "rgd", "report", log, "--out", outs[1], "--master", cluster.url],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as report:
        cluster.kill_a_worker(report)
        _, errors = report.communicate(timeout=TIMEOUT_S)

    assert (report.returncode, errors) == (0, "")
    found = [json.loads(Objects(out).read("summary.json")) for out in outs]
    assert [(one["group"], one["admitted"]) for one in found[1]["groups"]] == [("gold", 7.0)]
    facts = found[1]["log"]
    assert (facts["records"], facts["missing_records"]) == (SEGMENTS * ROUNDS, 0)
    # Only tasks count what they fetch, and they read every byte twice: the driver brought nothing.
    fetched = [one["log"].pop("fetched_bytes") for one in found]
    assert all(one >= 2 * facts["stored_bytes"] for one in fetched)
    assert found[0] == found[1]
    assert Objects(outs[1]).names("").keys() == Objects(outs[0]).names("").keys()
