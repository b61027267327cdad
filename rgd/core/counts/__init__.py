"""What crosses from the gate, which answers requests, to the plane, which agrees with the peers.

Requests add to plain integers (`counters`; `unsaid` bounds what callers do not tell). When the plane asks,
`news` packs the rows that it needs as a page (`page`). The plane knows no other object of the gate.
"""
