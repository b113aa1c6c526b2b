"""The suite's version: here only. `tools/release VERSION` writes it, and gridbuf's: they have one
version.
"""

__version__ = "0.1.0"
