"""The errors of a report; each has a remedy.

`Unavailable` (no Java, no PySpark) and `ConfigError` (a usage error) come from `rgd.errors`. A
damaged log is no error: the report covers the readable part and lists the damage.
"""

from rgd.errors import RgdError, Unavailable


class AnalysisError(RgdError):
    """A report cannot be made."""


class JavaMissing(Unavailable):
    """Spark needs Java, and no installed one is new enough."""


class SparkMissing(Unavailable):
    """The `report` extra is not installed, or Spark does not start."""


class NoLog(AnalysisError):
    """A path has no segment files, or cannot be read."""


class BadLake(AnalysisError):
    """A file of a lake is damaged, or somebody else's."""


class DataLost(AnalysisError):
    """Entries that a stream has not read are not there any more."""


class NothingLogged(AnalysisError):
    """The segments have no usable record."""


class DuplicateLog(AnalysisError):
    """The same records were given twice, so everything would be counted twice."""
