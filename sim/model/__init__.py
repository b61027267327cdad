"""A vectorised model for big sweeps: 100 daemons x 100,000 groups on a laptop.

Law: the rules are the core's own (`rule`); what is modelled is only what the
event-driven simulator does in detail: load as rates instead of requests
(`workload`), buckets as fluid (`fluid`), and an exchange without loss whose
reports are all there before the next round. A property test holds shares equal
to those of the event-driven core, round by round.

`sweep` runs chunks of groups that fit the processor's cache, `tally` adds up
what the contract asks for, `python -m sim.model` is the command.
"""
