"""The fairness report: analyses the usage logs with Spark.

`segments` finds and reads segment files; `source` makes Spark tables of them; `pieces` reduces a
segment to each broker's counts in each window; `windows` joins the brokers of a group; `fairness`,
`steps` and `findings` judge; `charts` and `page` show; `report` is the entry point for the command line.

Law: executors load the core, the wire and this package, never the daemon's configuration, adapters
or application. Spark and Arrow are imported by the functions that need them, so that
importing this package costs nothing. docs/report.md states every formula.
"""
