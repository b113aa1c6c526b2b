"""The suite's version, which is gridbuf's, too: here only. `tools/release VERSION` writes both."""

__version__ = "0.1.0"
