"""The package's version; pyproject.toml says the same, which a test checks."""

__version__ = "0.1.0"
