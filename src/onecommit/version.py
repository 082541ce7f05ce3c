"""The version, in a module of its own: nothing below the package root may import the root."""

__version__ = "0.2.0.dev0"
