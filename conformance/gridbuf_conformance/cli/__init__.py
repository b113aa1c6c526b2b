"""The command `gridbuf-conformance`: its options (`arguments`) and its actions (`commands`)."""

from .arguments import UsageError, main, parser

__all__ = ["UsageError", "main", "parser"]
