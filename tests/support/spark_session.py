"""The one Spark of a test run, started as `rgd report` starts its own.

    from tests.support.spark_session import spark  # in the conftest.py of tests that need it

Without Java 17 the tests that ask for it skip, or fail where CI is set (tests/support/components.py).
"""

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

from rgd.analysis.session import session
from tests.support import components

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Generator["SparkSession"]:
    """A local Spark of two cores; what runs a report in the same process uses it too."""
    components.java()
    with session("local[2]") as running:
        yield running
