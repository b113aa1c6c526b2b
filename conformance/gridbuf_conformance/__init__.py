"""gridbuf_conformance: judges producers of n-dimensional arrays against the published exchange specs."""
