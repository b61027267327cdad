"""The daemon's interfaces to the outside, as typing.Protocols, with their types."""
