"""Digests of fields: are two runs the same?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, SupportsIndex


def digest(
    field: Any,
    *,
    dims: str | Sequence[str] | None = None,
    lower: Mapping[str, int] | Sequence[SupportsIndex | None] | None = None,
) -> str:
    """Return 128 bits that identify the values of a field, in hexadecimal.

    The digest depends on the element type, and for each point of the domain on the names of the dimensions, the indices and the
    bits of the value. Layout, order of the dimensions, padding, halo and device do not change it. The parts of a distributed
    field add up: see `gridbuf.mpi.Decomposition.digest`.

    Parameters
    ----------
    field : Storage, Buffer, numpy.ndarray, xarray.DataArray, field of gt4py.next, or another array
        Of a storage the domain counts, without the halo.
    dims : str or sequence of str, optional
        Names of the dimensions. Default: those that the field declares, else I, J, K, 0, 1, ...
    lower : sequence or mapping of int, optional
        Index of the first point of each dimension (`gridbuf.storage.storage`). Default: the one that the field knows, else 0 for
        the first point of the domain.

    Returns
    -------
    str
        32 digits. Equal digests mean equal fields, but for a probability of about 2^-62. It does not resist an attacker.

    Raises
    ------
    TypeError, ValueError, BufferError
        As of `gridbuf.storage.as_storage`.

    Notes
    -----
    Bits decide: 0.0 and -0.0 differ, and so do NaNs with other payloads. Bytes of an element without a value do not count.
    float32 and float64 have different digests for the same numbers. Rules: docs/spec.md 9.85.

    Examples
    --------
    >>> import gridbuf
    >>> import numpy
    >>> values = numpy.arange(6.0).reshape(2, 3)
    >>> field = gridbuf.storage.storage(values, layout=(1, 0), alignment_size=64)
    >>> gridbuf.digest(field) == gridbuf.digest(values) == gridbuf.digest(values.T, dims="JI")
    True
    >>> values[1, 2] += 1e-15
    >>> gridbuf.digest(field) == gridbuf.digest(values)
    False
    """
    from .storage import Storage, as_storage

    library = type(field).__module__.partition(".")[0]
    if library == "xarray":
        names = field.dims if dims is None else dims
        field = field.data
        dims = None if getattr(field, "dims", None) == names else names
    elif library == "gt4py":
        import_module("gridbuf.gt4py.next")  # fields export their ranges then
    if not isinstance(field, Storage) or dims is not None or lower is not None:
        field = as_storage(field, dims=dims, lower=lower)
    return str(field._digest(None))
