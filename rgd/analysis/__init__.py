"""What Spark makes of usage logs: the fairness report, the lake, and tables and streams of rows.

Four entry points: `report` (`rgd report`), `convert` (`rgd log convert`), `source` (`spark.read`) and `stream`
(`spark.readStream`). docs/report.md has every formula, and under "Implementation" the data's way through the modules.

Law: executors load the core, the wire, the storage, `rgd.errors`, `rgd.text` and this package, never the daemon's configuration, adapters
or application. Spark and Arrow are imported by the functions that need them, so that
importing this package costs nothing.
"""
