"""The binary and textual forms that the exchange specs define, read from outside by `ctypes`.

Nothing here judges and nothing here trusts: each module reads one form (a `Py_buffer`, a DLPack
capsule, a `PyArrayInterface` struct, `/proc/self/maps`, a PEP 3118 format, a typestr) and says what
it found. Every address is checked against the map of the process before it is followed.
"""
