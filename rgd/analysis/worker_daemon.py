"""The process that forks Spark's Python workers on this machine; it imports what they need first, and once.

Law: no thread exists before a fork. Spark sets OMP_NUM_THREADS=1, so that numpy starts none; pyarrow, which starts
some, is left to the workers.

Spark puts a zip of PySpark before the installed one, and Python compiles all of it in each process. Together this takes
half of what the first tasks of a report wait for (decision 111).
"""

import sys
import sysconfig
from importlib import import_module

_INSTALLED = f"{sysconfig.get_path('purelib')}/pyspark/"
sys.path[:] = [place for place in sys.path if not place.startswith(_INSTALLED)]

for name in ("evaluation", "lake_reader", "reading"):
    import_module(f"rgd.analysis.{name}")
import_module("pyspark.worker")

if __name__ == "__main__":
    import_module("pyspark.daemon").manager()
