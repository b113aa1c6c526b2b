"""The second program of docs/get-started.md."""

# [check]
import gridbuf
import gridbuf_conformance

field = gridbuf.allocate((134, 134, 80), backend="gt:cpu_ifirst", aligned_index=(3, 3, 0))
print(gridbuf_conformance.check(field))
# [/check]
