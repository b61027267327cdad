"""The two processes of a daemon: the gate, which answers, and the plane, which agrees."""
