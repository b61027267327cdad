"""Starts Spark for a report: quiet, local and small unless configured otherwise.

Law: missing components are reported before the start, with a remedy. Nothing listens beyond
loopback. Java's output goes to a file, whose end is shown if Spark does not start. No
files remain in the working directory.

An existing session (a test run, a notebook, spark-submit) is used unchanged and not
stopped. With `--master` the same settings go to a cluster, without those for this machine.
"""

import logging
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rgd.analysis.errors import JavaMissing, SparkMissing
from rgd.analysis.spark_errors import explained

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

JAVA_VERSION_MIN: Final = 17

#: A local session uses at most this many cores: each has a Python worker of some 150 MB.
LOCAL_CORES_MAX: Final = 8

#: How long Java may take to end by itself, in seconds.
JAVA_END_S_MAX: Final = 10

#: How long a standalone master may take to accept a connection, in seconds.
MASTER_ANSWER_S_MAX: Final = 5

#: How a standalone master's URL begins; addresses follow, with commas between.
_STANDALONE: Final = "spark://"

#: How much of Java's own words an error shows, in lines.
JAVA_LINES_SHOWN: Final = 3
_FAULT: Final = re.compile(r"Exception|Error|Could not")

_LOG4J: Final = """\
status = error
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d %p %c{1}: %m%n
"""

#: A report is many short tasks and little shuffling: a small collector and the first compiler start
#: in half the time, and Python does the long work anyway.
_JAVA_OPTIONS: Final = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:+IgnoreUnrecognizedVMOptions"

_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.python.filterPushdown.enabled": "true",
    # Workers keep what they have used: the pages of each large array would be cleared anew.
    "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL": "system",
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(32 << 20),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(128 << 20),
}

_LOOPBACK: Final = "127.0.0.1"


@contextmanager
def session(master: str | None = None) -> Iterator["SparkSession"]:
    """A Spark session; `master` and errors are those of `started`."""
    with started(master) as context:
        from pyspark.sql import SparkSession

        yield SparkSession.getActiveSession() or SparkSession(context)


@contextmanager
def started(master: str | None = None) -> Iterator["SparkContext"]:
    """A Spark for the time of a report, without SQL, whose start takes seconds.

    Args:
        master: Spark's master URL; None is this machine.

    Raises:
        JavaMissing: no Java that is new enough.
        SparkMissing: PySpark is not installed, does not start, or `master` does not answer.
    """
    require_spark()
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        yield running.sparkContext
        return
    require_java()
    require_master(master)
    with (
        tempfile.TemporaryDirectory(prefix="rgd-spark-", ignore_cleanup_errors=True) as scratch,
        _unheard(),
        _java(master, Path(scratch)) as context,
    ):
        import pyarrow as pa

        # Arrow's own allocator keeps what drawing had: 30 MiB.
        pa.set_memory_pool(pa.system_memory_pool())
        yield context


def read_rows(
    spark: "SparkSession",
    paths: Sequence[str],
    *,
    from_ms: int | None = None,
    to_ms: int | None = None,
) -> "DataFrame":
    """The rows of some logs (`schema.ROWS`); comparisons of `broker_timestamp` are pushed down."""
    from rgd.analysis.source import RgdRows

    spark.dataSource.register(RgdRows)
    pushes = spark.conf.get("spark.sql.python.filterPushdown.enabled", "false")
    reader = spark.read.format("rgd").option("push_filters", str(pushes))
    for name, value in (("from_ms", from_ms), ("to_ms", to_ms)):
        if value is not None:
            reader = reader.option(name, value)
    return reader.load(list(paths))


def require_spark() -> None:
    """Check for PySpark and its dependencies.

    Raises:
        SparkMissing: names the missing ones.
    """
    absent = [
        name for name in ("pyspark", "pyarrow", "jinja2", "obstore") if find_spec(name) is None
    ]
    if absent:
        raise SparkMissing(
            f"{', '.join(absent)} not installed: pip install '.[report]' in rgd's source tree"
        )


def require_java() -> Path:
    """The Java that Spark will run.

    Raises:
        JavaMissing: there is none, or it is too old.
    """
    remedy = f"install Java {JAVA_VERSION_MIN} or newer, or set JAVA_HOME to it"
    java = _find_java()
    if java is None:
        raise JavaMissing(
            f"this command runs on Spark, which needs Java, and none was found; {remedy}"
        )
    version = _java_version(java)
    if version < JAVA_VERSION_MIN:
        found = f"version {version}" if version else "not a Java that runs"
        raise JavaMissing(f"{java} is {found}; {remedy}")
    return java


def require_master(master: str | None) -> None:
    """Check that a standalone master is there; Spark itself takes minutes to notice.

    Raises:
        SparkMissing: nothing accepts connections at any of its addresses.
    """
    if master is None or not master.startswith(_STANDALONE):
        return
    failures = []
    for address in master.removeprefix(_STANDALONE).split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), MASTER_ANSWER_S_MAX).close()
        except (OSError, ValueError) as exc:
            failures.append(f"{address}: {exc}")
        else:
            return
    raise SparkMissing(
        f"no Spark master answers ({'; '.join(failures)}); start it, or correct --master"
    )


def _find_java() -> Path | None:
    """Where Spark's own launcher looks: JAVA_HOME, then the path."""
    home = os.environ.get("JAVA_HOME")
    if home:
        return Path(home) / "bin" / "java"
    found = shutil.which("java")
    return Path(found) if found else None


def _java_version(java: Path) -> int:
    """The major version, 0 where it does not say one."""
    try:
        done = subprocess.run(  # noqa: S603 - Java by its path, as Spark is about to run it
            [java, "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    version = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(version.group(1)) if version else 0


@contextmanager
def _unheard() -> Iterator[None]:
    """After Ctrl-C py4j writes tracebacks to the root logger, which then goes nowhere unless it was told to."""
    nobody = logging.NullHandler()
    logging.getLogger().addHandler(nobody)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(nobody)


@contextmanager
def _java(master: str | None, scratch: Path) -> Iterator["SparkContext"]:
    """Run Spark's Java process."""
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf().setAppName("rgd report")
    for name, value in (_SETTINGS | _settings_of(master, scratch)).items():
        conf.set(name, value)
    words = scratch / "java.err"
    gateway = None
    try:
        with words.open("wb") as stderr, _home(conf.get("spark.master", ""), scratch):
            launch: Any = launch_gateway  # untyped
            gateway = launch(conf, {"stdout": stderr, "stderr": stderr})
        context = SparkContext(conf=conf, gateway=gateway)
        # Spark notices only here that a master gave no answer.
        context.setLogLevel("ERROR")
        if not str(context.master).startswith("local"):
            context.addPyFile(_zipped(scratch))
    except (PySparkException, Py4JError, OSError) as exc:
        _end_java(gateway)
        said = explained(_last_messages(words) or str(exc))
        raise SparkMissing(f"Spark did not start: {said}") from exc
    try:
        yield context
    finally:
        context.stop()
        _end_java(gateway)


@contextmanager
def _home(master: str, scratch: Path) -> Iterator[None]:
    """On this machine Spark is launched from a home without its zip of PySpark, unless another home is asked for.

    Java puts the zip before the installed PySpark, and every Python process that it starts compiles all of it anew.
    """
    import pyspark

    if "SPARK_HOME" in os.environ or not master.startswith("local"):
        yield
        return
    home = scratch / "home"
    home.mkdir()
    for path in Path(pyspark.__file__).parent.iterdir():
        if path.name != "python":
            (home / path.name).symlink_to(path)
    os.environ["SPARK_HOME"] = str(home)
    try:
        yield
    finally:
        del os.environ["SPARK_HOME"]


def _zipped(scratch: Path) -> str:
    """This rgd for executors, so that they have it, and the same one."""
    package = Path(__file__).parents[1]
    return shutil.make_archive(str(scratch / package.name), "zip", package.parent, package.name)


def _end_java(gateway: Any) -> None:
    """End the Java process; Spark itself leaves that to the end of Python."""
    from pyspark import SparkContext

    # Spark keeps the gateway on the class and would go on talking to a process that is gone.
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - there is no other way
    # Set still if Spark failed between the context and the session.
    SparkContext._active_spark_context = None  # noqa: SLF001 - as above
    process = None if gateway is None else gateway.proc
    if (
        process is None
    ):  # spark-submit's own ends by itself, and the next session of its script needs it
        return
    gateway.shutdown()
    process.stdin.close()
    try:
        process.wait(JAVA_END_S_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _settings_of(master: str | None, scratch: Path) -> dict[str, str]:
    """Settings that depend on the master. A local session is kept to this machine and to `scratch`."""
    settings = {"spark.sql.warehouse.dir": (scratch / "warehouse").as_uri()}
    is_submitted = master is None and "PYSPARK_GATEWAY_PORT" in os.environ
    if is_submitted:
        return settings
    if master is not None and not master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        return settings | {"spark.master": master}
    cores = min(os.cpu_count() or 1, LOCAL_CORES_MAX)
    # Workers and driver take what is on the path otherwise, which need not know rgd.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = _LOOPBACK
    log4j = scratch / "log4j2.properties"
    log4j.write_text(_LOG4J, encoding="utf-8")
    return settings | {
        "spark.master": master or f"local[{cores}]",
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.driver.extraJavaOptions": f"{_JAVA_OPTIONS} -Dlog4j2.configurationFile={log4j.as_uri()}",
        "spark.local.dir": str(scratch),
        "spark.python.daemon.module": "rgd.analysis.worker_daemon",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.default.parallelism": str(cores),
    }


def _last_messages(words: Path) -> str:
    """What Java said was wrong, or said last."""
    if not words.exists():
        return ""
    lines = words.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    faults = [line for line in lines if _FAULT.search(line) and not line.startswith("\tat ")]
    return " | ".join(faults[:JAVA_LINES_SHOWN] or lines[-JAVA_LINES_SHOWN:])
