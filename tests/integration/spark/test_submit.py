"""A script that spark-submit runs makes several reports and lakes, one session after the other.

Not covered: a cluster (test_cluster.py).
"""

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from tests.support import components

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("submit")]

SCRIPT = """\
from rgd.analysis.session import session

for number in (3, 4):
    with session() as spark:
        print(spark.range(number).count(), flush=True)
"""


def test_a_script_of_spark_submit_has_one_session_after_the_other(tmp_path: Path) -> None:
    components.java()
    script = tmp_path / "nightly.py"
    script.write_text(SCRIPT, encoding="utf-8")
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    done = subprocess.run(
        [submit, "--master", "local[1]", "--conf", "spark.driver.bindAddress=127.0.0.1", script],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert (done.returncode, done.stdout) == (0, "3\n4\n"), done.stderr[-2000:]
