"""The command `gridbuf-conformance`: its options (`arguments`), and what each subcommand does (`commands`)."""

from .arguments import INTERRUPTED, UsageError, main, parser

__all__ = ["INTERRUPTED", "UsageError", "main", "parser"]
