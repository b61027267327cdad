"""A report on a standalone cluster: a master and a worker on loopback, as processes of their own.

Not covered: several machines, Kubernetes, YARN.
"""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from rgd.adapters.usagelog.index import index_path, mend
from rgd.storage.manifest import TieredSegment
from rgd.storage.objects import Objects
from rgd.storage.tier import LogTier, checksum_of
from tests.support import components
from tests.support.log_maker import START_MS, LogMaker, Usage

pytestmark = pytest.mark.spark

#: Of everything here; the machine may be busy.
TIMEOUT_S = 300
LOOPBACK = "127.0.0.1"


@contextmanager
def running(environment: Mapping[str, str], *command: str, until: str) -> Iterator[str]:
    """One of Spark's own daemons; what the first line that matches says."""
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
            yield found[1]
        finally:
            process.kill()


@pytest.fixture
def python_without_rgd(tmp_path: Path) -> Path:
    """A Python that has what this one has but for rgd: no .pth file of its packages is read."""
    assert Path(sys.base_prefix) != Path(sys.prefix), "rgd's own environment is a virtual one"
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    python = tmp_path / "python"
    base = Path(sys.executable).resolve()
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}:$PYTHONPATH" exec "{base}" "$@"\n')
    python.chmod(0o755)
    done = subprocess.run([python, "-c", "import rgd"], cwd=tmp_path, check=False, env={}, stderr=subprocess.PIPE)  # fmt: skip
    assert b"No module named 'rgd'" in done.stderr
    return python


@pytest.fixture
def cluster(tmp_path: Path, tier_place: str) -> Generator[str]:
    """The master's URL; the tier's environment is the worker's too."""
    components.java()
    deploy = "org.apache.spark.deploy."
    master = (f"{deploy}master.Master", "--host", LOOPBACK, "--port", "0", "--webui-port", "0")
    worker = (f"{deploy}worker.Worker", "--host", LOOPBACK, "--webui-port", "0", "-c", "1")
    with running(os.environ, *master, until=r"Starting Spark master at (spark://\S+)") as url:
        limits = ("-m", "1g", "-d", str(tmp_path / "work"), url)
        with running(os.environ, *worker, *limits, until="(Successfully registered)"):
            yield url


@pytest.mark.parametrize("tier_place", ["s3"], indirect=True)
def test_executors_need_no_rgd_and_read_the_tier_themselves(
    cluster: str, tier_place: str, python_without_rgd: Path, tmp_path: Path
) -> None:
    maker = LogMaker(tmp_path / "log", "b1")
    maker.rounds(50, Usage("gold", 7, 10, quota=7))
    segment = maker.close()
    mend(segment)
    data = segment.read_bytes()
    facts = TieredSegment(0, 49, START_MS, START_MS + 50_000, len(data), checksum_of(data))
    LogTier(Objects(tier_place), "usage/b1/1").put(facts, data, index_path(segment).read_bytes())

    command: list[Path | str] = [
        "report",
        tier_place,
        "--out",
        tmp_path / "out",
        "--master",
        cluster,
    ]
    done = subprocess.run(
        [sys.executable, "-m", "rgd", *command],
        env={**os.environ, "PYSPARK_PYTHON": str(python_without_rgd)},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )

    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads((tmp_path / "out" / "summary.json").read_bytes())
    assert [(one["group"], one["admitted"]) for one in found["groups"]] == [("gold", 7.0)]
    assert found["log"]["records"] == 50
