"""The process that forks Spark's Python workers on this machine; it imports what they need first, and once.

Law: no thread exists before a fork. Spark sets OMP_NUM_THREADS=1, so that numpy starts none; pyarrow, which starts
some, is left to the workers. What the imports took was a part of what the first tasks of a report wait for (decision 111).
"""

from importlib import import_module

for name in ("evaluation", "lake_reader", "reading"):
    import_module(f"rgd.analysis.{name}")
import_module("pyspark.worker")

if __name__ == "__main__":
    import_module("pyspark.daemon").manager()
