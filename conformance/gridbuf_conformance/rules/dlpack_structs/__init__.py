"""DLPack, the C structs: the rows are in rules.toml, the checks beside them."""
