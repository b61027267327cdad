"""The usage log on disk: one folder per broker, segments of PIP-70 entries, sparse indexes beside them.

`writer` is the daemon's interface (a thread behind a bounded queue). `appender` writes: rolling, syncing,
counting. `recovery` finds where a log continues after a crash. `reader` is for all readers:
entries in order, damage with its offset, seeking by time; `sources` are the segments that it reads, on disk
or in a tier. `files` has names, paths and the lock, `headers` reads only the part of an entry that the
broker added, `index` has the sparse index. `inspecting` lists segments, `verifying` checks them.
`retention` decides which segments go, `trimming` deletes them on disk, `tiering` uploads them and deletes
them in the tier, `tier_state` remembers what the tier holds, `cursors` has the readers' positions.
`rgd.wire` interprets the bytes.
"""
