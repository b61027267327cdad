"""Fixtures of the tests that need Spark."""

import os
from typing import TYPE_CHECKING

import pytest

from tests.support.spark_session import spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["spark"]


@pytest.fixture
def workers_see_s3(tier_place: str, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> None:
    """The workers' environment is otherwise what it was when the one Spark of the run was started."""
    assert tier_place
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        if name in os.environ:
            monkeypatch.setitem(spark.sparkContext.environment, name, os.environ[name])
