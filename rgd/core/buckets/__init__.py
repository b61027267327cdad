"""The fast path of a request: plain calls into token buckets in memory.

`bucket` is one token bucket. `decision` holds requests and their answers.
`level` is one level of the chain: broker, resource group, topic, subscription.
`split` divides a group's share over topics.
`recent_refusals` counts what a level refused in the last minute.
`limiter` resolves a name to its chain and decides.
"""
