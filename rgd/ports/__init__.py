"""What the daemon needs of the world, as typing.Protocols, and the words these are spoken in."""
