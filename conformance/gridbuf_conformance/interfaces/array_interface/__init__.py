"""NumPy array interface, the dict: the rows are in rules.toml, the checks next to them."""
