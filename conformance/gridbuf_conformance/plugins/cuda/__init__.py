"""CUDA array interface: the rows are in rules.toml, the checks next to them."""
