"""DLPack, the C exchange table: the rows are in rules.toml, the checks next to them."""
