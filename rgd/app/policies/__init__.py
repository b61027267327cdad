"""Where the policies in force come from: a table that all daemons write, a file, or a stock Pulsar.

`source` says what every source is, and `choose` puts one together as the settings say. `table` follows
and writes a policies table, `ledger` says which of its records count; `file` follows a file that is the
truth; `stock` reads a stock Pulsar's admin API, and `stock_topics` which topics of it. `admin` has the
changes that look at more than one policy. Each source gives the daemon a new book whenever something
changed.
"""
