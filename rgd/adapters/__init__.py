"""What fulfils the ports with real libraries; no adapter knows its siblings."""
