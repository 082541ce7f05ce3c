"""Onecommit: your rows and the job's completion land in one commit."""

__version__ = "0.1.0"

__all__: list[str] = []
