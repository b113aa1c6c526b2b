"""GT4Py and allocation: the rows are in rules.toml, the checks next to them."""
