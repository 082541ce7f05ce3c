"""The part of a worker that runs jobs: claims, handlers, completions, reconciliation, callbacks, follow-ups."""
