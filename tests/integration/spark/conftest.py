"""Fixtures of the tests that need Spark."""

from tests.support.spark_session import spark

__all__ = ["spark"]
