"""What `rgd doctor` looks at, before a daemon starts or beside one that runs.

Laws: a check uses the loaders and probes of the daemon itself, so it cannot disagree with it. No check waits longer than its limit,
and none stops another. Nothing is changed: a file that is written to try a disk or a tier is deleted again.

    findings    what a check says, and how all of them are run
    machine     Python, Java, ports, open files, disk
    files       tokens, certificates, groups file
    exchange    the exchange, its members and clocks, Pulsar's admin API
    storage     the tier
    running     a daemon that runs
    whole       all of them for given settings
"""
