"""`gridbuf.gt4py.next.FieldAllocator` against GT4Py's allocator protocol, and the functions that put it in place."""

from __future__ import annotations

import doctest
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import gridbuf
import gridbuf.storage
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip(
    "gt4py.next.custom_layout_allocators",
    reason="gt4py is not installed; install the peers with `./bazelw --peers`",
)

from gridbuf.gt4py import _fields
from gridbuf.gt4py import next as gb_next
from gt4py import next as gtx
from gt4py._core import definitions
from gt4py.next import common, constructors
from gt4py.next import custom_layout_allocators as gt_allocators

HORIZONTAL, VERTICAL, LOCAL = (
    gtx.DimensionKind.HORIZONTAL,
    gtx.DimensionKind.VERTICAL,
    gtx.DimensionKind.LOCAL,
)
Cell, Edge = gtx.Dimension("Cell"), gtx.Dimension("Edge")
K = gtx.Dimension("K", kind=VERTICAL)
C2E = gtx.Dimension("C2E", kind=LOCAL)

CPU = gtx.DeviceType.CPU


def allocated(
    domain: Any, dtype: Any = float, allocator: Any = gb_next.allocator, **more: Any
) -> Any:
    return allocator.__gt_allocate__(common.domain(domain), definitions.dtype(dtype), **more)


# ---- The protocol. ----


def test_gt4py_takes_it_for_an_allocator() -> None:
    allocator = gb_next.allocator
    assert gt_allocators.is_field_allocator_for(allocator, CPU)
    assert gt_allocators.is_field_allocator_factory_for(allocator, CPU)
    assert allocator.device_type is allocator.__gt_device_type__ is CPU
    assert allocator.__gt_allocator__ is allocator


def test_it_is_a_value() -> None:
    one, other = (
        gb_next.FieldAllocator(byte_alignment=128),
        gb_next.FieldAllocator(byte_alignment=128),
    )
    assert one == other and hash(one) == hash(other) and one != gb_next.allocator
    assert pickle.loads(pickle.dumps(one)) == one
    with pytest.raises(AttributeError):
        one.populate = True  # type: ignore[misc]


@st.composite
def domains(draw: st.DrawFn) -> Any:
    """Up to five dimensions of any kinds, with any start."""
    kinds = draw(st.lists(st.sampled_from([HORIZONTAL, VERTICAL, LOCAL]), max_size=5))
    starts = [draw(st.integers(-5, 5)) for _ in kinds]
    return common.domain(
        [
            (gtx.Dimension(f"D{number}", kind=kind), (start, start + draw(st.integers(1, 9))))
            for number, (kind, start) in enumerate(zip(kinds, starts))
        ]
    )


@given(
    domain=domains(),
    dtype=st.sampled_from(["bool", "int8", "int32", "int64", "float16", "float32", "float64"]),
    data=st.data(),
)
def test_a_buffer_is_what_was_asked_for(domain: Any, dtype: str, data: st.DataObject) -> None:
    index = [
        common.NamedIndex(dim, data.draw(st.integers(points.start, points.stop - 1)))
        for dim, points in zip(domain.dims, domain.ranges)
    ]
    made = allocated(domain, dtype, aligned_index=index)
    array = made.ndarray
    assert type(array) is np.ndarray and array.flags.writeable and array.dtype == dtype
    assert gridbuf.owns(array)
    assert array.shape == made.shape == domain.shape and array.strides == made.strides
    assert made.device == definitions.Device(CPU, 0) and made.dtype == definitions.dtype(dtype)
    # The layout is that of GT4Py's allocator.
    theirs = gt_allocators.horizontal_first_layout_mapper(domain.dims)
    assert tuple(made.layout_map) == tuple(theirs)
    # The element asked for is aligned, and so is every row.
    element = tuple(i.value - points.start for i, points in zip(index, domain.ranges))
    assert made.aligned_index == element
    assert array[(..., *(slice(e, e + 1) for e in element))].ctypes.data % 64 == 0
    assert (
        all(
            stride % 64 == 0
            for stride in array.strides
            if stride > array.itemsize and array.size > 1
        )
        or array.ndim < 2
    )
    array[...] = 1
    assert (array == 1).all()
    assert made.memory_address + made.byte_offset == array.ctypes.data


@pytest.mark.parametrize(
    ("dims", "layout"),
    [((Cell, K), (1, 0)), ((K, Cell), (0, 1)), ((Cell, C2E), (1, 0)), ((C2E, K, Edge), (0, 1, 2))],
)
def test_horizontal_dimensions_are_contiguous(dims: tuple[Any, ...], layout: Sequence[int]) -> None:
    array = allocated({dim: 20 for dim in dims}).ndarray
    order = sorted(range(len(dims)), key=lambda i: -array.strides[i])
    assert tuple(order.index(i) for i in range(len(dims))) == tuple(layout)


def c_order(dims: Sequence[Any]) -> tuple[int, ...]:
    return tuple(range(len(dims)))


def test_the_vertical_dimension_can_be_contiguous() -> None:
    mapper = gb_next.vertical_contiguous_layout_mapper
    assert mapper([]) == ()
    assert mapper([K, Cell]) == (1, 0)
    assert mapper([Cell, K, C2E]) == (0, 2, 1)
    assert mapper([Edge, C2E]) == (0, 1)
    field = gtx.zeros({K: 5, Cell: 4}, allocator=gb_next.FieldAllocator(layout_mapper=mapper))
    assert field.ndarray.strides == (8, 64)


def test_the_layout_is_the_mapper_s() -> None:
    allocator = gb_next.FieldAllocator(layout_mapper=c_order, byte_alignment=8)
    assert allocated({Cell: 6, K: 5}, allocator=allocator).strides == (40, 8)
    assert pickle.loads(pickle.dumps(allocator)) == allocator
    wrong = gb_next.FieldAllocator(layout_mapper=lambda dims: (0, 0))
    with pytest.raises(ValueError, match="layout"):
        allocated({Cell: 6, K: 5}, allocator=wrong)


def test_aligned_index_is_absolute() -> None:
    domain = {Cell: (10, 30), K: (2, 7)}
    index = [common.NamedIndex(Edge, 1000), common.NamedIndex(Cell, 13)]
    made = allocated(domain, aligned_index=index)
    assert made.aligned_index == (3, 0) and made.ndarray[3:, 0].ctypes.data % 64 == 0
    for value in (9, 30):
        with pytest.raises(ValueError, match=rf"Cell is {value}, .*\[10, 30\)"):
            allocated(domain, aligned_index=[common.NamedIndex(Cell, value)])


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="device_type is .*ROCM.* one of CPU, CUDA"):
        gb_next.FieldAllocator(device_type=gtx.DeviceType.ROCM)
    with pytest.raises(ValueError, match="alignment_size"):
        gb_next.FieldAllocator(byte_alignment=0)
    with pytest.raises(ValueError, match="device_id is 1, .* the host is device 0"):
        allocated({Cell: 3}, device_id=1)
    with pytest.raises(ValueError, match="device_id is 1, .* the host is device 0"):
        gb_next.zeros({Cell: 3}, device=definitions.Device(CPU, 1))
    cuda = gb_next.FieldAllocator(device_type=gtx.DeviceType.CUDA)
    with pytest.raises(ValueError, match=r"device_id is 2, .* by cupy\.cuda\.Device"):
        allocated({Cell: 3}, allocator=cuda, device_id=2)
    with pytest.raises(ValueError, match="local dimension"):
        allocated({Cell: 3}, definitions.DType(np.float64, (3,)))


def test_a_device_without_cupy() -> None:
    try:
        import cupy  # noqa: F401
    except ImportError:
        allocator = gb_next.FieldAllocator(device_type=gtx.DeviceType.CUDA)
        with pytest.raises(gridbuf.DeviceUnavailableError):
            allocated({Cell: 3}, allocator=allocator)
    else:
        pytest.skip("NOT tested: CuPy is installed")


# ---- Sizes beyond 32 bits. ----

LARGE = {gtx.Dimension(name): 1024 for name in "IJL"}


def test_sizes_are_counted_in_64_bits() -> None:
    """The pages are not touched, so 8 GiB are address space only."""
    made = allocated(LARGE)
    assert made.ndarray.nbytes == 8 << 30
    assert gridbuf.alloc_info(made.ndarray)["total_bytes"] >= 8 << 30
    with pytest.raises(ValueError, match="bytes"):
        allocated({gtx.Dimension(name): 2**31 for name in "IJL"})


# Sizes are NumPy scalars of 32 bits in GT4Py up to 1.2.1, and warn as they wrap round.
@pytest.mark.filterwarnings("ignore:overflow")
def test_gt4py_s_allocator_counts_in_32_bits() -> None:
    """The reason for the paragraph in the how-to. If this fails, GT4Py has changed: correct the paragraph, delete this test."""
    made = gt_allocators.StandardCPUFieldBufferAllocator().__gt_allocate__(
        common.domain(LARGE), definitions.dtype(float)
    )
    assert made.ndarray.nbytes == 8 << 30 and made.buffer.nbytes < 100


# ---- In place of GT4Py's. ----


def test_gt4py_s_constructors() -> None:
    domain = {Cell: (3, 20), K: 5}
    for field in (
        gtx.empty(domain, allocator=gb_next.allocator),
        gtx.zeros(domain, allocator=gb_next.allocator),
        gtx.ones(domain, allocator=gb_next.allocator),
        gtx.full(domain, 2.0, allocator=gb_next.allocator),
        gtx.as_field([Cell, K], np.ones((17, 5)), allocator=gb_next.allocator),
    ):
        assert gridbuf.owns(field) and field.shape == (17, 5)


def test_with_allocator() -> None:
    backend = gb_next.with_allocator(gtx.gtfn_cpu)
    assert not gridbuf.owns(gtx.zeros({Cell: 3}, allocator=gtx.gtfn_cpu))
    assert gridbuf.owns(gtx.zeros({Cell: 3}, allocator=backend))
    assert backend.allocator.device_type is CPU and backend.name == gtx.gtfn_cpu.name
    special = gb_next.FieldAllocator(byte_alignment=4096)
    assert gb_next.with_allocator(backend, special).__gt_allocator__ is special
    with pytest.raises(TypeError, match=r"use\(\)"):
        gb_next.with_allocator(None)
    with pytest.raises(ValueError, match="is for"):
        gb_next.with_allocator(backend, gb_next.FieldAllocator(device_type=gtx.DeviceType.CUDA))


def test_use_is_the_default_for_a_while() -> None:
    def is_ours() -> bool:
        return gridbuf.owns(gtx.zeros({Cell: 3}))

    before = gt_allocators.device_allocators[CPU]
    assert not is_ours()  # GT4Py now keeps a default constructor
    with gb_next.use() as allocator:
        assert allocator is gb_next.allocator and is_ours()
        assert gridbuf.owns(gtx.as_field([Cell], np.ones(3)))
        special = gb_next.FieldAllocator(byte_alignment=4096)
        with gb_next.use(special):
            assert gtx.zeros({Cell: 3}).ndarray.ctypes.data % 4096 == 0
            assert gt_allocators.device_allocators[CPU] is special
        assert gt_allocators.device_allocators[CPU] is allocator and is_ours()
    assert gt_allocators.device_allocators[CPU] is before and not is_ours()
    with pytest.raises(KeyError), gb_next.use():
        raise KeyError
    assert not is_ours()


# ---- The constructors of gridbuf. ----

CONSTRUCTORS: list[tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...], float]] = [
    (gb_next.zeros, gtx.zeros, (), 0.0),
    (gb_next.ones, gtx.ones, (), 1.0),
    (gb_next.full, gtx.full, (2.5,), 2.5),
]


@pytest.mark.parametrize(("ours", "theirs", "more", "value"), CONSTRUCTORS)
@given(domain=domains(), dtype=st.sampled_from(["int32", "float32", "float64"]))
def test_a_constructor_makes_gt4py_s_field(
    ours: Any, theirs: Any, more: Any, value: float, domain: Any, dtype: str
) -> None:
    made, other = ours(domain, *more, dtype=dtype), theirs(domain, *more, dtype=dtype)
    assert type(made) is type(other) and made.domain == other.domain and made.dtype == other.dtype
    assert (made.ndarray == np.array(value).astype(dtype)).all() and gridbuf.owns(made)


def test_empty_and_defaults() -> None:
    assert gb_next.empty({Cell: 3}).dtype == definitions.dtype("float64")
    assert gb_next.full({Cell: 3}, 7).dtype == gtx.full({Cell: 3}, 7).dtype
    assert gb_next.zeros({}).shape == ()
    index = [common.NamedIndex(Cell, 5)]
    assert gb_next.empty({Cell: (4, 9)}, aligned_index=index).ndarray[1:].ctypes.data % 64 == 0
    device = definitions.Device(CPU, 0)
    assert gridbuf.owns(gb_next.zeros({Cell: 3}, device=device))
    with pytest.raises(ValueError, match="device type"):
        gb_next.zeros({Cell: 3}, device=definitions.Device(gtx.DeviceType.CUDA, 0))


def test_constructors_take_gridbuf_s_allocators() -> None:
    special = gb_next.FieldAllocator(byte_alignment=4096)
    backend = gb_next.with_allocator(gtx.gtfn_cpu, special)
    for allocator in (special, backend):
        assert gb_next.zeros({Cell: 3}, allocator=allocator).ndarray.ctypes.data % 4096 == 0
    for other in (np, gtx.gtfn_cpu, gt_allocators.StandardCPUFieldBufferAllocator()):
        with pytest.raises(TypeError, match="with_allocator"):
            gb_next.zeros({Cell: 3}, allocator=other)


@pytest.mark.parametrize(
    "data",
    [
        np.arange(12.0).reshape(3, 4),
        np.asfortranarray(np.arange(12.0).reshape(3, 4))[::-1],
        gridbuf.from_array(np.arange(12.0).reshape(3, 4), layout=(1, 0)),
        gridbuf.storage.storage(np.arange(12.0).reshape(3, 4), dims="IK"),
        gtx.as_field([Cell, K], np.arange(12.0).reshape(3, 4)),
    ],
    ids=["C order", "negative stride", "layout", "storage", "field"],
)
def test_as_field_copies(data: Any) -> None:
    field = gb_next.as_field([Cell, K], data, origin={Cell: 1})
    theirs = gtx.as_field([Cell, K], np.asarray(getattr(data, "ndarray", data)), origin={Cell: 1})
    assert field.domain == theirs.domain and gridbuf.owns(field)
    assert (field.ndarray == theirs.ndarray).all() and field.dtype == theirs.dtype
    assert not np.shares_memory(field.ndarray, np.asarray(getattr(data, "ndarray", data)))
    whole = gb_next.as_field(field.domain, data, dtype="float32")
    assert (whole.ndarray == theirs.ndarray).all() and whole.dtype == definitions.dtype("float32")


def test_as_field_refuses_what_does_not_fit() -> None:
    data = np.ones((3, 4))
    with pytest.raises(ValueError, match="has 1 dimensions"):
        gb_next.as_field([Cell], data)
    with pytest.raises(ValueError, match="origin names Edge"):
        gb_next.as_field([Cell, K], data, origin={Edge: 1})
    with pytest.raises(ValueError, match="start indices"):
        gb_next.as_field({Cell: 3, K: 4}, data, origin={Cell: 1})
    with pytest.raises(ValueError, match=r"has \(3, 4\)"):
        gb_next.as_field({Cell: 4, K: 3}, data)


@pytest.mark.parametrize("table", [[[0, -1], [1, 2]], [[0, 1], [1, 2]]])
def test_as_connectivity(table: list[list[int]]) -> None:
    data = np.array(table, np.int32)
    ours, theirs = (module.as_connectivity([Cell, C2E], Edge, data) for module in (gb_next, gtx))
    assert gridbuf.owns(ours) and (ours.ndarray == theirs.ndarray).all()
    assert (ours.domain, ours.codomain) == (theirs.domain, theirs.codomain)
    assert ours.skip_value == theirs.skip_value
    assert gb_next.as_connectivity([Cell, C2E], Edge, data, skip_value=-2).skip_value == -2


def test_memory_goes_when_a_field_goes() -> None:
    """GT4Py keeps constructors, but none that holds an array."""
    import weakref

    array = gridbuf.zeros((4,))
    gone = weakref.ref(array)
    field = gridbuf.gt4py.as_field(array, [Cell])
    del array, field
    assert gone() is None


def test_signatures_are_gt4py_s() -> None:
    import inspect

    for name in ("empty", "zeros", "ones", "full", "as_field", "as_connectivity"):
        ours = inspect.signature(getattr(gb_next, name)).parameters
        theirs = inspect.signature(getattr(constructors, name)).parameters
        assert [(p.name, p.kind) for p in ours.values()] == [
            (p.name, p.kind) for p in theirs.values()
        ]


@pytest.mark.parametrize("module", [gb_next, _fields])
def test_examples_run(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


def test_gt4py_is_imported_at_first_use() -> None:
    import subprocess
    import sys

    program = (
        "import sys, gridbuf, gridbuf.gt4py; gridbuf.gt4py.cartesian; dir(gridbuf.gt4py); "
        "assert not [n for n in sys.modules if n.split('.')[0] == 'gt4py']; "
        "gridbuf.gt4py.next; assert 'gt4py.next' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    program = (
        "import sys; sys.modules['gt4py'] = None; import gridbuf\n"
        "try: import gridbuf.gt4py.next\n"
        "except ImportError as error: assert 'pip install gt4py' in str(error), error\n"
        "else: raise SystemExit('no error')"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
