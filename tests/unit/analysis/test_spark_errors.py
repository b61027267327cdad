"""Spark's failures in one line; the texts are written after the form of Spark's, not recorded from it.

Not covered: Spark itself (tests/integration/spark).
"""

import pytest
from py4j.protocol import Py4JError

from rgd.analysis.errors import AnalysisError
from rgd.analysis.spark_errors import explained, spark_errors
from tests.support.cases import cases

OUT_OF_HEAP = """\
An error occurred while calling o157.parquet.
: java.lang.OutOfMemoryError: Java heap space
\tat java.base/java.util.Arrays.copyOf(Arrays.java:3537)
\tat org.apache.spark.sql.execution.SparkPlan.executeCollect(SparkPlan.scala:462)
"""
NO_RGD = """\
An error occurred while calling o61.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 0.0 failed 4 times: \
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/spark/python/pyspark/worker.py", line 1818, in main
    process()
ModuleNotFoundError: No module named 'rgd'
\tat org.apache.spark.api.python.BasePythonRunner.compute(PythonRunner.scala:135)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
"""
JAVA_ENDED = "An error occurred while calling o157.parquet. Answer from Java side is empty"
OTHER = """\
An error occurred while calling o157.parquet.
: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed.
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.taskFailed(QueryExecutionErrors.scala:797)
Caused by: java.io.IOException: No space left on device
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
"""
OF_A_WORKER = """\
An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/rgd/analysis/lake_reader.py", line 74, in _read
pyarrow.lib.ArrowInvalid: 0 bytes
"""


@cases(
    "failure, expected",
    {
        "heap": (OUT_OF_HEAP, ("OutOfMemoryError", "SPARK_DRIVER_MEMORY", "--window-s")),
        "no rgd": (NO_RGD, ("No module named 'rgd'", "--py-files")),
        "no pyarrow": (
            NO_RGD.replace("'rgd'", "'pyarrow'"),
            ("'pyarrow'", "install numpy, pyarrow"),
        ),
        "silent master": (
            "1 WARN no id | 2 ERROR Reason: All masters are unresponsive! Giving up.",
            ("Giving up", "correct --master"),
        ),
        "Java ended": (JAVA_ENDED, ("Answer from Java", "master ended")),
        "other": (OTHER, ("java.io.IOException: No space left on device; free some",)),
        "no name of an exception": (OF_A_WORKER, ("ArrowInvalid: 0 bytes",)),
        "nothing": ("", ("no message",)),
    },
)
def test_a_failure_is_one_line_with_cause_and_remedy(
    failure: str, expected: tuple[str, ...]
) -> None:
    line = explained(failure)

    assert "\n" not in line
    assert not [words for words in expected if words not in line]


def test_an_error_of_java_becomes_an_error_of_the_report() -> None:
    with (
        pytest.raises(AnalysisError, match=r"^Spark failed: java.lang.OutOfMemoryError.*heap"),
        spark_errors(),
    ):
        raise Py4JError(OUT_OF_HEAP)


def test_an_error_of_a_task_is_told_in_its_own_words() -> None:
    said = OF_A_WORKER.replace("pyarrow.lib.ArrowInvalid", "rgd.analysis.errors.BadLake")
    assert explained(said) == "0 bytes"
    assert explained("rgd.analysis.errors.BadLake: " + 400 * "x") == 400 * "x"
