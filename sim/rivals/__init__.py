"""What rgd is compared with: other rules for the same job, as brains of members.

Each takes the same events, asks for the same effects and grants from the same
buckets as `rgd.core.broker.broker.Broker`, over the same simulated network, so
only the rule for the shares differs. `rival` is what they have in common,
`pulsar_shipped` what Apache Pulsar ships, `fps` Flow Proportional Share.
"""
