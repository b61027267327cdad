"""Spark's failures in one line: the cause, and the remedy where it is known.

Spark wraps a cause in many lines of its own and of Java's stack. The last line that is an exception
with a message has the cause: Python's traceback, where there is one, ends with it.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rgd.analysis.errors import AnalysisError

#: Most characters of a failure's own message in an error.
_WORDS_MAX: Final = 300
_EXCEPTION: Final = re.compile(r"([\w.$]+(Error|Exception)|(rgd|pyarrow)\.[\w.]+)\b.*:")
_WRAPPERS: Final = re.compile(r"^(: |Caused by: )+")
_OWN: Final = re.compile(r"^rgd\.analysis\.errors\.\w+: ")

#: What to do about a failure, by a pattern in its text; the first that is found counts.
_REMEDIES: Final = (
    (
        r"OutOfMemoryError|GC overhead limit",
        "Spark ran out of Java's heap; give it more (SPARK_DRIVER_MEMORY=4g, on a cluster "
        "spark.executor.memory too), or ask for longer windows (--window-s)",
    ),
    (
        r"ModuleNotFoundError: No module named '(numpy|pyarrow|google|google_crc32c|backports|msgspec)\b",
        "Spark's executors lack it; install numpy, pyarrow, protobuf, msgspec, google-crc32c and backports.zstd there "
        "(PYSPARK_PYTHON names another Python); rgd itself is sent to them",
    ),
    (
        r"ModuleNotFoundError: No module named 'rgd\b",
        "the executors of a session that rgd did not start lack it; give them this version with --py-files or "
        "addPyFile (its wheel, renamed to .zip), or let PYSPARK_PYTHON name a Python that has it",
    ),
    (
        r"masters are unresponsive",
        "what is at --master is no Spark master that understands this Spark; start one of the same version, "
        "or correct --master",
    ),
    (r"Master must", "correct --master: spark://HOST:PORT, k8s://URL, yarn or local[CORES]"),
    (r"No space left on device", "free some there, or in TMPDIR for Spark's files, and repeat it"),
    (
        r"^rgd\.storage\.errors\.ObjectMissing|^FileNotFoundError",
        "either it was replaced or deleted since this command began (by a conversion or by retention), then repeat it; "
        "or not every machine of the cluster sees it, then name places that all see, as s3://BUCKET/PREFIX",
    ),
    (
        r"^rgd\.storage\.errors\.",
        "the tasks read the tier themselves: each machine needs obstore, the network to it and the AWS_* "
        "environment of this command",
    ),
    (
        r"Answer from Java side is empty|Connection refused|SparkContext was shut down"
        r"|stopped SparkContext",
        "Spark's Java process or its master ended; if memory ran out, free some or ask for longer "
        "windows (--window-s)",
    ),
)


@contextmanager
def spark_errors() -> Iterator[None]:
    """Let Spark's errors through as one line.

    Raises:
        AnalysisError: with cause and remedy.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as exc:
        raise AnalysisError(f"Spark failed: {explained(str(exc))}") from exc


def explained(failure: str) -> str:
    """The cause of a failure and what to do about it, from all that Spark says."""
    lines = [_WRAPPERS.sub("", line.strip()) for line in failure.splitlines() if line.strip()]
    first = lines[0] if lines else "no message"
    for pattern, remedy in _REMEDIES:
        line = next((line for line in lines if re.search(pattern, line)), None)
        if line is not None:
            return f"{line[:_WORDS_MAX]}; {remedy}"
    cause = next((line for line in reversed(lines) if _EXCEPTION.match(line)), first)
    return cause[:_WORDS_MAX] if (own := _OWN.sub("", cause)) == cause else own
