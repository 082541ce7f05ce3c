"""A payments service: orders charged and shops paid, each exactly once, through a provider that may not answer."""
