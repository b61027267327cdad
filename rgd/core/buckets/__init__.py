"""The short road of a request: plain calls into token buckets in memory.

`bucket` is one token bucket; `decision` is what is asked and answered;
`level` is one step of the chain broker, resource group, topic, subscription;
`split` divides a group's share over topics;
`refusals` counts what a level refused in the last minute;
`limiter` resolves a name to its chain and decides.
"""
