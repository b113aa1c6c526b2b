"""Adapters of libraries: their producers and consumers, and their known failures."""
