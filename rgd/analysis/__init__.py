"""What Spark makes of usage logs: the fairness report, the lake, and tables and streams of rows.

Four entry points: `report` (`rgd report`), `convert` (`rgd log convert`), `source` (`spark.read`) and `stream`
(`spark.readStream`). Read the report's path first: `discovery` finds segments; `reading` is the task
for one: `segments` reads it, `chunks` makes columns of its records, `pieces` reduces these to each broker's counts in each window, `packets` packs them by group; `windows` joins the brokers of a group;
`evaluation` has `fairness`, `steps` and `findings` judge them; `tenants` sums them; `wording`, `charts`, `page_tables` and
`page` show, and `output` writes. `jobs` runs all of it in Spark's tasks.
Beside it are the clocks (`headers`, `timelines`, `clock_offsets`, `clocks`), what is missing (`continuity`, `presence`, `log_facts`), what-if
(`scenarios`, `replay`, `uneven`, `what_if`) and the lake (`lake`, `lake_names`, `lake_schema`, `minutes`).

Law: executors load the core, the wire, the storage, `rgd.errors`, `rgd.text` and this package, never the daemon's configuration, adapters
or application. Spark and Arrow are imported by the functions that need them, so that
importing this package costs nothing. docs/report.md states every formula.
"""
