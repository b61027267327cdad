"""The exchange: what the brokers tell one another, and what each makes of it.

`messages` are the words; `usage_map` is group -> broker -> usage (PIP-82);
`peers` knows who is there and how stale; `suppression` decides what is worth
saying again.
"""
