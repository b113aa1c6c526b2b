"""Ratios of gridbuf against the libraries its users have today, measured in one process and interleaved."""
