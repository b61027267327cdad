"""The simulator: the daemon's own core under a virtual clock and a seeded network.

Law: there is no second implementation of a rule in here; every member is a
real `rgd.core.broker.broker.Broker`, and a seed reproduces a run to the last event.
"""
