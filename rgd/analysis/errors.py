"""What a report can fail of; each error says what to do.

`Unavailable` (no Java, no PySpark) and `ConfigError` (asked wrongly) come from `rgd.errors`; a
damaged log is no error: what can be read is reported on, and the damage is listed.
"""

from rgd.errors import RgdError, Unavailable


class AnalysisError(RgdError):
    """A report cannot be made."""


class JavaMissing(Unavailable):
    """Spark needs Java, and there is none that is new enough."""


class SparkMissing(Unavailable):
    """The `report` extra is not installed, or Spark does not start."""


class NoLog(AnalysisError):
    """A path holds no segment files, or cannot be read."""


class NothingLogged(AnalysisError):
    """The segments hold no record that could be reported on."""


class DuplicateLog(AnalysisError):
    """The same records were given twice, so everything would be counted twice."""
