"""The `rgd` command: one module for each command, put together in `main`.

Commands read options, call what does the work, and print. They import it inside the command, so that
`rgd --help` and `rgd shares` start at once and never load Pulsar, Spark or the HTTP server.
"""
