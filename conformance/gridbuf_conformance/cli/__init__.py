"""The command `gridbuf-conformance`: its options (`arguments`), and what each subcommand does
(`commands`).
"""

from .arguments import UsageError, main, parser

__all__ = ["UsageError", "main", "parser"]
