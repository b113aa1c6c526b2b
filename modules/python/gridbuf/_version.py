"""The package's version: here only. `tools/release VERSION` writes it."""

__version__ = "0.1.0"
