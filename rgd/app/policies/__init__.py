"""The sources of policies: a table that all daemons write, a file, or a stock Pulsar.

`source` has the interface of every source, and `choose` builds the configured one. `table` follows
and writes a policies table, and `ledger` decides which of its records count. `file` follows a groups
file. `stock` reads a stock Pulsar's admin API, and `stock_topics` selects the topics to read. `admin` has the
changes that check more than one policy. Each source gives the daemon a new policy snapshot after every
change.
"""
