"""The exchange: the reports that brokers send each other, and the state each keeps of them.

`messages` are the message types. `usage_map` is group -> broker -> usage (PIP-82).
`peers` tracks the live brokers and how stale each is. `suppression` decides which
changes are worth reporting.
"""
