"""DLPack, the C structs: the rows are in rules.toml, the checks next to them."""
