"""DLPack, the Python methods: the rows are in rules.toml, the checks next to them."""
