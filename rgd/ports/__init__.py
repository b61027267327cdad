"""What the daemon needs of the world, as typing.Protocols; adapters fulfil them."""
