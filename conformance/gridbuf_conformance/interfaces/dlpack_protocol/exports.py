"""DLPack exports: `__dlpack__`, `__dlpack_device__` over a block, as published or one change off.

"dlpack" is a producer of today: it takes the four keywords and gives the versioned capsule to
a consumer that asks for one. "dlpack-legacy" follows the 2022 standard, which has only `stream`; a
consumer that takes one of them must take both (DP-14). Each variant below is one line of
`dlpack.h`, of its Python page or of the array API; each edits one thing of the struct.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from ..dlpack_structs.structs import CPU, CUDA, FLAG_COPIED, VersionedManaged
from ...abi.gpu import has_gpu
from ...plan import Plan
from ...plan.dtypes import DTYPES
from ...plan.producer import Capabilities
from ...exports import plans
from .exporter import (
    CountedTensor,
    DLPackVariant,
    Exporter,
    MeetingExporter,
    ObservedDLPack,
    ObservedLegacyDLPack,
)
from ...exports.export import PLAIN, Interface, Variant

_BYTE_OFFSET = 64
_MANY_DIMENSIONS = 65
_LANES = 4
_UNKNOWN = 200
_THREADS = 8


# -- bending the struct --------------------------------------------------------------------------


def _with_byte_offset(counted: CountedTensor) -> None:
    counted.managed.tensor.data -= _BYTE_OFFSET
    counted.managed.tensor.byte_offset = _BYTE_OFFSET


def _without_strides(counted: CountedTensor) -> None:
    counted.strides = None


def _without_strides_in_1_2(counted: CountedTensor) -> None:
    counted.strides = None
    if isinstance(counted.managed, VersionedManaged):
        counted.managed.minor = 2


def _with_pointer(counted: CountedTensor) -> None:
    counted.managed.tensor.data = counted.block.address


def _with_junk_strides(counted: CountedTensor) -> None:
    """Wherever a stride is never multiplied with anything but 0, it is one that leads nowhere."""
    shape, strides = counted.block.shape, counted.strides
    assert isinstance(strides, list)
    junk = 0x0123_4567_89AB_CDEF
    empty = 0 in shape
    counted.strides = [junk if empty or n <= 1 else s for n, s in zip(shape, strides)]


def _with_wild_metadata(counted: CountedTensor) -> None:
    counted.shape = counted.strides = counted.block.forbidden


def _without_deleter(counted: CountedTensor) -> None:
    counted.deleter = None


def _with_python_deleter(counted: CountedTensor) -> None:
    counted.delete_by_python()


def _of_unknown_type_with_python_deleter(counted: CountedTensor) -> None:
    counted.delete_by_python()
    counted.managed.tensor.code = _UNKNOWN


def _without_context(counted: CountedTensor) -> None:
    counted.managed.manager_ctx = None


def _with_wild_context(counted: CountedTensor) -> None:
    counted.managed.manager_ctx = counted.block.forbidden


def _of_a_later_minor(counted: CountedTensor) -> None:
    if isinstance(counted.managed, VersionedManaged):
        counted.managed.minor = 99


def _of_another_major(counted: CountedTensor) -> None:
    """Version 2.0: of such a struct only version, manager_ctx and deleter mean anything."""
    managed = counted.managed
    if not isinstance(managed, VersionedManaged):
        return
    managed.major, managed.minor = 2, 0
    managed.flags = 2**64 - 1
    ctypes.memset(ctypes.addressof(managed.tensor), 0xFF, ctypes.sizeof(managed.tensor))
    managed.tensor.data = counted.block.forbidden
    managed.tensor.ndim = 3
    counted.shape = counted.strides = counted.block.forbidden


def _of_major_2_alone(counted: CountedTensor) -> None:
    """Version 2.0, in front of a tensor that a consumer of version 1 can read."""
    if isinstance(counted.managed, VersionedManaged):
        counted.managed.major, counted.managed.minor = 2, 0


def _copied(counted: CountedTensor) -> None:
    if isinstance(counted.managed, VersionedManaged):
        counted.managed.flags |= FLAG_COPIED


def _with(**fields: int) -> Callable[[CountedTensor], None]:
    """Sets fields of the tensor."""

    def bend(counted: CountedTensor) -> None:
        for name, value in fields.items():
            setattr(counted.managed.tensor, name, value)

    return bend


def _with_lanes(counted: CountedTensor) -> None:
    """The last axis, of extent 4, becomes the lanes of one element; strides count such elements."""
    tensor = counted.managed.tensor
    tensor.lanes, tensor.ndim = _LANES, tensor.ndim - 1
    shape, strides = counted.block.shape, counted.strides
    assert isinstance(strides, list)
    counted.shape = shape[:-1]
    counted.strides = [stride // _LANES for stride in strides[:-1]]


def _with_many_dimensions(counted: CountedTensor) -> None:
    shape, strides = counted.block.shape, counted.strides or []
    assert isinstance(strides, list)
    added = _MANY_DIMENSIONS - len(shape)
    counted.managed.tensor.ndim = _MANY_DIMENSIONS
    counted.shape = (*(1,) * added, *shape)
    counted.strides = [*(1,) * added, *strides]


def _named(name: bytes) -> Callable[[CountedTensor], None]:
    def bend(counted: CountedTensor) -> None:
        counted.name = name

    return bend


def _used(counted: CountedTensor) -> None:
    counted.name = b"used_dltensor_versioned" if counted.versioned else b"used_dltensor"


# -- bending the methods -------------------------------------------------------------------------


class ExporterError(RuntimeError):
    """What the variant "raises" raises: a type that no consumer knows."""


class _Raises(Exporter):
    def __dlpack__(self, *arguments: Any, **keywords: Any) -> object:
        raise ExporterError("this exporter cannot export today")


class _GivesANumber(Exporter):
    def __dlpack__(self, *arguments: Any, **keywords: Any) -> object:
        super().__dlpack__(*arguments, **keywords)
        return 42


class _WithoutDevice:
    """`__dlpack__` alone."""

    def __init__(self, observed: ObservedDLPack) -> None:
        self._observed = observed

    def __dlpack__(self, *arguments: Any, **keywords: Any) -> object:
        return self._observed.hand_out(arguments, keywords)


# -- which plans fit -----------------------------------------------------------------------------


def _dense_with_axes(plan: Plan) -> Plan:
    dense = plans.dense(plan)
    return dense if plan.ndim else dense.replaced(shape=(1,))


def _not_dense_with_axes(plan: Plan) -> str:
    return plans.not_dense_misfit(plan) or ("" if plan.ndim else "it has no dimensions")


def _with_free_strides(plan: Plan) -> Plan:
    """Adds an axis of extent 1 (or no elements)."""
    if not _fixed_strides_misfit(plan):
        return plan
    return plans.simple(plan, shape=(1, *plan.shape[:7]))


def _fixed_strides_misfit(plan: Plan) -> str:
    shape = plan.view_map.shape
    free = 0 in shape or any(extent == 1 for extent in shape)
    return "" if free and shape else "every one of its strides has a meaning"


def _dimensions_misfit(plan: Plan) -> str:
    return f"it has {plan.view_map.shape.__len__()} dimensions" if plan.view_map.shape else ""


def _four_floats(plan: Plan) -> Plan:
    if not _four_floats_misfit(plan):
        return plan
    return plans.plain(plan).replaced(shape=(*plans.plain(plan).shape[:3], _LANES), dtype="float32")


def _four_floats_misfit(plan: Plan) -> str:
    fits = plan.shape[-1:] == (_LANES,) and plan.dtype == "float32"
    return plans.not_dense_misfit(plan) or ("" if fits else "its last axis is not four float32")


def _bytes_misfit(plan: Plan) -> str:
    return plans.not_dense_misfit(plan) or ("" if plan.itemsize == 1 else "its items have no byte")


def _float_misfit(plan: Plan) -> str:
    return plans.not_dense_misfit(plan) or ("" if plan.dtype == "float32" else "it is not float32")


def _writable(plan: Plan) -> Plan:
    return plan.replaced(readonly=False)


def _readonly_misfit(plan: Plan) -> str:
    return "it is read-only" if plan.readonly else ""


# -- the variants --------------------------------------------------------------------------------

_PLAIN_RULES = (
    *("DP-32", "DP-30", "DP-31", "DP-08", "DP-09", "DP-14", "DP-20", "DP-21", "DP-28"),
    *("DL-14", "DL-19", "DL-21"),
)
_LIFE = ("DP-08", "DP-09", "DP-31", "DL-19")
"""Rules on releases: how often each object is released. They are judged on refusals, too."""


def _variant(name: str, rule: str, expects: str, about: str, **more: Any) -> DLPackVariant:
    rules = (rule, *more.pop("also", ()), *more.pop("life", _LIFE))
    return DLPackVariant(name, tuple(dict.fromkeys(rules)), expects, about, **more)


_NOT_EMPTY: dict[str, Any] = {"adapt": plans.filled, "misfit": plans.empty_misfit}
_DENSE: dict[str, Any] = {"adapt": _dense_with_axes, "misfit": _not_dense_with_axes}
_EMPTY: dict[str, Any] = {
    "adapt": plans.empty,
    "misfit": plans.not_empty_misfit,
    "control": plans.plain,
}
_COMPARED: dict[str, Any] = {"compared": True, "life": ("DP-08", "DP-09", "DL-19")}
"""What becomes of the tensor is compared with what became of the plain one."""
_BYTES: dict[str, Any] = {"adapt": plans.of_dtype("uint8"), "misfit": _bytes_misfit}
_FLOAT: dict[str, Any] = {"adapt": plans.of_dtype("float32"), "misfit": _float_misfit}

_VARIANTS: tuple[Variant, ...] = (
    DLPackVariant(PLAIN, _PLAIN_RULES, "right-or-error", "as published"),
    _variant(
        "byte-offset",
        "DL-10",
        "right",
        "data is 64 bytes before the first element, and byte_offset says so",
        bend=_with_byte_offset,
        **_NOT_EMPTY,
    ),
    _variant(
        "null-strides",
        "DL-08",
        "right",
        "strides is NULL, which means row-major before version 1.2",
        bend=_without_strides,
        **_DENSE,
    ),
    _variant(
        "junk-strides",
        "DP-33",
        "right",
        "strides of axes of extent 1, or of an empty tensor, lead nowhere",
        bend=_with_junk_strides,
        adapt=_with_free_strides,
        misfit=_fixed_strides_misfit,
    ),
    _variant(
        "empty-null",
        "DP-32",
        "right",
        "a tensor without elements has data NULL",
        also=("DL-12",),
        **_EMPTY,
    ),
    _variant(
        "empty-pointer",
        "DP-32",
        "right",
        "a tensor without elements has a pointer nevertheless",
        also=("DL-12",),
        bend=_with_pointer,
        **_EMPTY,
    ),
    _variant(
        "wild-metadata",
        "DL-13",
        "right",
        "shape and strides of a tensor without dimensions point to an inaccessible page",
        bend=_with_wild_metadata,
        adapt=plans.zero_dim,
        misfit=_dimensions_misfit,
    ),
    _variant(
        "null-deleter",
        "DL-19",
        "right",
        "the deleter is NULL: there is nothing to delete",
        bend=_without_deleter,
    ),
    _variant(
        "python-deleter",
        "DL-20",
        "right",
        "the deleter acquires the GIL and runs Python code, "
        "which drops the exporter and the capsule",
        bend=_with_python_deleter,
    ),
    _variant(
        "python-deleter-unknown-code",
        "DL-20",
        "error",
        f"the same deleter, of a tensor of type code {_UNKNOWN}, which is none that there is",
        bend=_of_unknown_type_with_python_deleter,
        **_NOT_EMPTY,
    ),
    _variant(
        "null-context",
        "DL-28",
        "right",
        "manager_ctx is NULL",
        bend=_without_context,
        **_COMPARED,
    ),
    _variant(
        "wild-context",
        "DL-28",
        "right",
        "manager_ctx leads to a page that only the producer knows",
        bend=_with_wild_context,
        **_COMPARED,
    ),
    _variant(
        "odd-address",
        "DP-32",
        "right-or-error",
        "the first element is at an odd address",
        also=("DP-30",),
        **_NOT_EMPTY,
    ),
    _variant(
        "65-dimensions",
        "DP-32",
        "right-or-error",
        "it has 65 dimensions",
        bend=_with_many_dimensions,
        **_NOT_EMPTY,
    ),
    _variant(
        "unknown-code",
        "DL-23",
        "error",
        f"type code {_UNKNOWN} is none that there is",
        bend=_with(code=_UNKNOWN),
        **_NOT_EMPTY,
    ),
    _variant(
        "unknown-bits",
        "DL-23",
        "error",
        "a float of 24 bits is none that a consumer knows",
        bend=_with(bits=24),
        **_FLOAT,
    ),
    _variant(
        "lanes",
        "DL-23",
        "right-or-error",
        "elements are vectors of four float32",
        bend=_with_lanes,
        adapt=_four_floats,
        misfit=_four_floats_misfit,
    ),
    _variant(
        "unknown-device",
        "DL-23",
        "error",
        "device type 77 is none that there is",
        device=(77, 0),
        **_NOT_EMPTY,
    ),
    _variant(
        "unknown-device-of-tensor",
        "DL-23",
        "error",
        "the tensor has device type 77, and __dlpack_device__ names the host",
        bend=_with(device_type=77),
        is_robust=True,
        **_NOT_EMPTY,
    ),
    _variant(
        "unknown-device-of-method",
        "DP-32",
        "right-or-error",
        "__dlpack_device__ names device type 77, and the tensor is in host memory",
        device=(77, 0),
        bend=_with(device_type=CPU),
        is_robust=True,
        **_NOT_EMPTY,
    ),
    *(
        _variant(
            f"fp{bits}-bits-8",
            "DL-26",
            "error",
            f"a {bits}-bit float says it has 8 bits",
            bend=_with(code=code, bits=8),
            **_BYTES,
        )
        for bits, code in ((4, 17), (6, 15))
    ),
    _variant(
        "used-capsule",
        "DP-05",
        "error",
        "the capsule says that it was used",
        bend=_used,
        life=(),  # the tensor belongs to another object
        **_NOT_EMPTY,
    ),
    _variant(
        "other-name",
        "DP-05",
        "error",
        "the capsule has a name that DLPack does not know",
        bend=_named(b"tensor"),
        **_NOT_EMPTY,
    ),
    _variant(
        "shared-capsule",
        "DP-05",
        "right-or-error",
        "two threads get the same capsule at the same time",
        exporter=MeetingExporter,
        threads=2,
        shares_capsule=True,
        **_NOT_EMPTY,
    ),
    _variant(
        "threads",
        "DP-32",
        "right",
        f"{_THREADS} threads import at the same time, each gets a capsule",
        exporter=MeetingExporter,
        threads=_THREADS,
        also=("DP-30",),
        compared=True,
        is_robust=True,
        **_NOT_EMPTY,
    ),
    _variant(
        "together",
        "DP-31",
        "right",
        "two calls import it, each gets a capsule, and both results live at the same time",
        calls=2,
        compared=True,
        **_NOT_EMPTY,
    ),
    _variant(
        "no-capsule",
        "DP-32",
        "error",
        "__dlpack__ returns a number",
        exporter=_GivesANumber,
        is_robust=True,
    ),
    _variant(
        "raises",
        "DP-29",
        "error",
        "__dlpack__ raises its own error",
        exporter=_Raises,
    ),
)

NULL_STRIDES_1_2 = _variant(
    "null-strides-1-2",
    "DL-08",
    "right-or-error",
    "strides is NULL in version 1.2, which does not allow it",
    bend=_without_strides_in_1_2,
    is_robust=True,
    **_DENSE,
)
"""Of exporters with the versioned struct, through a capsule or the C exchange table."""
_MODERN: tuple[Variant, ...] = (
    NULL_STRIDES_1_2,
    _variant(
        "later-minor",
        "DL-23",
        "right",
        "it says version 1.99",
        bend=_of_a_later_minor,
    ),
    _variant(
        "major-2",
        "DL-22",
        "error",
        "it says version 2.0, and everything except its deleter is junk",
        bend=_of_another_major,
        **_NOT_EMPTY,
    ),
    _variant(
        "major-2-readable",
        "DL-22",
        "error",
        "it says version 2.0, and has the layout of version 1",
        bend=_of_major_2_alone,
        **_NOT_EMPTY,
    ),
    _variant(
        "copied",
        "DL-01",
        "right",
        "flag bit 1 says that it is a copy, which belongs to the consumer",
        bend=_copied,
    ),
    _variant(
        "other-form",
        "DP-11",
        "right-or-error",
        "the capsule is of the form that was not asked for",
        other_form=True,
        adapt=_writable,
        misfit=_readonly_misfit,
    ),
    _variant(
        "no-device-method",
        "DP-29",
        "right-or-error",
        "there is no __dlpack_device__",
        exporter=_WithoutDevice,
    ),
)
_ON_A_DEVICE: tuple[Variant, ...] = (
    _variant(
        "cuda",
        "DP-32",
        "error",
        "it says CUDA device 0, where there is none",
        also=("DP-19",),
        device=(CUDA, 0),
        **_NOT_EMPTY,
    ),
)
"""Only where there is no such device: elsewhere the pointer would be believed, rightly."""

_CAPABILITIES: dict[str, Any] = {
    "dtypes": tuple(
        name
        for name, info in DTYPES.items()
        if info.dlpack is not None and info.packed_bits is None
    ),
    "max_ndim": 8,
    "layouts": "any",
    "byteorders": ("native",),
}
PLAIN_CAPABILITIES = Capabilities(**_CAPABILITIES, readonly=(False, True))
"""The arrays that a versioned tensor has words for."""

INTERFACES = (
    Interface(
        "dlpack",
        "__dlpack__ with stream, max_version, dl_device and copy",
        ("DL", "DP"),
        PLAIN_CAPABILITIES,
        ObservedDLPack,
        (*_VARIANTS, *_MODERN, *(() if has_gpu() else _ON_A_DEVICE)),
        taken_rule="DP-30",
        position=10,
    ),
    Interface(
        "dlpack-legacy",
        "__dlpack__ of the 2022 standard, with stream alone",
        ("DL", "DP"),
        Capabilities(**_CAPABILITIES, readonly=(False,)),
        ObservedLegacyDLPack,
        _VARIANTS,
        taken_rule="DP-14",
        position=11,
        base="dlpack",
    ),
)
