"""Agreement of interfaces: the rows are in rules.toml, the checks beside them."""
