"""NumPy array interface, the C struct: the rows are in rules.toml, the checks next to them."""
