"""What a person configures: process settings, the groups file, the tokens file.

`settings` has one frozen model per concern and `load` fills them from defaults, a YAML file, the
environment and options; `groups` reads the groups file into the core's policy snapshot; `tokens`
reads who may call. `document` parses YAML strictly, `faults` collects what is wrong, all of it at once,
and `lines` finds where. `reference` writes docs/configuration.md. An adapter may take the
section of the settings by which it is configured; where it has a form of its own, `rgd.app` converts.
"""
