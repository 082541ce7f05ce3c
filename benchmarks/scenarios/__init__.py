"""One module per scenario: `COLUMNS`, `RATE` and `measure(adapter, bench)`."""
