"""One module per job system, each holding `ADAPTER`; see `contract` for what it must offer."""
