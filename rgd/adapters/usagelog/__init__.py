"""The usage log on disk: one folder per broker, segments of PIP-70 entries, sparse indexes beside them.

`writer` is the daemon's side (a thread behind a bounded queue), `appender` its pen: rolling, syncing,
counting; `recovery` finds where a log goes on after a crash. `reader` is everybody else's side:
entries in order, damage with its place, seeking by time. `files` knows names, places and the lock,
`headers` reads no more of an entry than what the broker added, `index` keeps the sparse index.
What the bytes mean is `rgd.wire`'s business.
"""
