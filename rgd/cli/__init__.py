"""The `rgd` command: one module for each command, assembled in `main`.

Commands read options, call the code that does the work, and print. They import it inside the command, so that
`rgd --help` and `rgd shares` start at once and never load Pulsar, Spark or the HTTP server.
"""
