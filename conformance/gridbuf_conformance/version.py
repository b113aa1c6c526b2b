"""The suite's version. `pyproject.toml` has the same, and a test holds them together."""

__version__ = "0.1.0"
