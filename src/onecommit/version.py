"""The version, in a module of its own: nothing below the package root may import the root."""

__version__ = "0.1.0"
