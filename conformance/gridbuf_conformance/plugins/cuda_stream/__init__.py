"""CUDA stream protocol, `__cuda_stream__`: the rows are in rules.toml, the checks next to them."""
