"""Checks of producers: of the protocol, and of the allocation."""

from . import allocation, protocol

__all__ = ["allocation", "protocol"]
