"""What NumPy's functions do with storages: one table, which `numpy.*` calls, the methods and docs/reference/array-functions.md read.

A row has a rule, and the parameters whose arrays are paired by the names of their dimensions. All other arrays count by position.
Universal functions need no row: they are elementwise. A function that has no row and is not universal is refused.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

RULES = {
    "elementwise": "a storage; arrays are paired by name",
    "reduces": "a storage without the reduced dimensions; a scalar if none is left",
    "keeps": "a storage with the same dimensions",
    "along": "a storage with the same dimensions; a plain array if `axis` is None",
    "view": "a view, whose names follow the dimensions",
    "joins": "a storage with the dimensions of the first; the others are paired by name. A plain array where they lack the axis",
    "stacks": "a storage with one more dimension: the next free number, or the name that is `axis`",
    "parts": "views along one dimension",
    "compares": "a bool; arrays are paired by name",
    "like": "a storage with the parameters of the argument",
    "properties": "what NumPy says of shape and dtype; no element is read",
    "host": "what NumPy does with the elements on the host",
    "plain": "arrays count by position; a plain array of NumPy or CuPy, without names",
    "writes": "writes to a storage; arrays are paired by name",
    "no array": "takes no array",
}
"""What the functions of a rule return."""


class Row(NamedTuple):
    """How a function is mapped."""

    rule: str
    paired: tuple[str, ...] = ()


# "name:parameters" for each function; the first parameter is the array that gives the names.
_FUNCTIONS = {
    "elementwise": """
        angle:z around:a choose:a,choices clip:a,a_min,a_max,min,max digitize:x fix:x i0:x imag:val interp:x isclose:a,b
        iscomplex:x isin:element isneginf:x isposinf:x isreal:x nan_to_num:x real:val real_if_close:a round:a searchsorted:v
        select:condlist,choicelist,default sinc:x where:condition,x,y""",
    "reduces": """
        all:a,where amax:a,where amin:a,where any:a,where argmax:a argmin:a average:a,weights count_nonzero:a linalg.norm:x
        linalg.vector_norm:x max:a,where mean:a,where median:a min:a,where nanargmax:a nanargmin:a nanmax:a,where
        nanmean:a,where nanmedian:a nanmin:a,where nanpercentile:a,weights nanprod:a,where nanquantile:a,weights nanstd:a,where
        nansum:a,where nanvar:a,where percentile:a,weights prod:a,where ptp:a quantile:a,weights std:a,where sum:a,where trapezoid:y,x
        var:a,where""",
    "keeps": "gradient:f pad:array roll:a tile:A tril:m triu:m unwrap:p",
    "along": """
        argpartition:a argsort:a compress:a cumprod:a cumsum:a cumulative_prod:x cumulative_sum:x delete:arr diff:a,prepend,append
        insert:arr nancumprod:a nancumsum:a partition:a repeat:a sort:a take:a take_along_axis:arr,indices""",
    "view": """
        atleast_1d:arys atleast_2d:arys atleast_3d:arys expand_dims:a flip:m fliplr:m flipud:m linalg.matrix_transpose:x
        matrix_transpose:x moveaxis:a permute_dims:a rollaxis:a rot90:m squeeze:a swapaxes:a transpose:a""",
    "joins": "append:arr,values column_stack:tup concat:arrays concatenate:arrays dstack:tup hstack:tup vstack:tup",
    "stacks": "stack:arrays",
    "parts": "array_split:ary dsplit:ary hsplit:ary split:ary unstack:x vsplit:ary",
    "compares": "allclose:a,b array_equal:a1,a2 array_equiv:a1,a2",
    "like": "astype:x copy:a empty_like:prototype full_like:a ones_like:a zeros_like:a",
    "properties": "can_cast common_type iscomplexobj isrealobj ndim result_type shape size",
    "host": """
        array2string array_repr array_str may_share_memory save savetxt savez savez_compressed shares_memory""",
    "plain": """
        apply_along_axis apply_over_axes argwhere bincount block broadcast_arrays broadcast_to convolve corrcoef correlate cov
        cross diag diagflat diagonal dot ediff1d einsum extract fft.fft fft.fft2 fft.fftn fft.fftshift fft.hfft fft.ifft fft.ifft2 fft.ifftn fft.ifftshift fft.ihfft fft.irfft
        fft.irfftn fft.rfft fft.rfftn flatnonzero histogram histogram2d histogram_bin_edges histogramdd inner intersect1d kron
        lexsort lib.stride_tricks.sliding_window_view
        linalg.cholesky linalg.cond linalg.cross linalg.det linalg.diagonal linalg.eig linalg.eigh linalg.eigvals
        linalg.eigvalsh linalg.inv linalg.lstsq linalg.matmul linalg.matrix_norm linalg.matrix_power linalg.matrix_rank
        linalg.outer linalg.pinv linalg.qr linalg.slogdet linalg.solve linalg.svd linalg.svdvals linalg.tensordot
        linalg.trace linalg.vecdot matmul matvec meshgrid nonzero outer polyfit polyval ravel reshape resize setdiff1d setxor1d
        tensordot trace trim_zeros union1d unique unique_all unique_counts unique_inverse unique_values vdot vecdot vecmat""",
    "writes": "copyto:dst,src,where",
    "no array": """
        arange asarray broadcast_shapes empty eye fft.fftfreq fft.rfftfreq finfo from_dlpack full iinfo isdtype linspace
        ones zeros""",
}  # fmt: skip

ROWS: dict[str, Row] = {
    name: Row(rule, tuple(filter(None, parameters.split(","))))
    for rule, text in _FUNCTIONS.items()
    for name, _, parameters in (entry.partition(":") for entry in text.split())
}

REFUSED = {
    "fill_diagonal": "numpy.fill_diagonal(storage.to_numpy(), 0)",
    "piecewise": "numpy.where(storage > 0, storage, -storage)",
    "place": "numpy.copyto(storage, 0, where=storage > 0)",
    "put": "numpy.put(storage.to_numpy(), [0], 0)",
    "put_along_axis": "numpy.put_along_axis(storage.to_numpy(), indices, 0, axis=0)",
    "putmask": "numpy.copyto(storage, 0, where=storage > 0)",
}
"""Functions that pair or write by position, and what to type instead: code, which a test runs."""

MISSING = {
    **{
        name: f"storage.to_numpy().{name}"
        for name in "base byteswap ctypes dump dumps getfield setfield setflags tofile".split()
    },
    "put": REFUSED["put"],
    "resize": "gridbuf.storage.zeros((2, 3))",
}
"""Attributes of NumPy's arrays that storages do not have, and what to type instead."""


def row_of(name: str) -> Row | None:
    """The row of a function of NumPy, such as "linalg.norm"; None for one that is refused."""
    function = getattr(np, name, None)
    is_elementwise = isinstance(function, np.ufunc) and function.signature is None
    return Row("elementwise") if is_elementwise else ROWS.get(name)


def instead_of(name: str) -> str:
    """What to type instead of a function of NumPy's that storages do not have."""
    if name.endswith(".at"):
        return f"numpy.{name}(storage.to_numpy(), 0, 1)"
    return REFUSED.get(name, f"numpy.{name}(storage.to_numpy()), or to_cupy() on a device")
