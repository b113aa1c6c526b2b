"""Nothing that Python can pass may crash the process, and no object exists half-made."""

from __future__ import annotations

import gc
import inspect
import operator
import sys
import weakref
from collections.abc import Callable
from typing import Any

import gridbuf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


class Boom(Exception):
    """Raised by the objects below; must reach the caller unchanged."""


class RaisingIndex:
    def __index__(self) -> int:
        raise Boom


class LyingIndex:
    def __index__(self) -> Any:
        return "3"


class RaisingSequence:
    def __len__(self) -> int:
        raise Boom

    def __getitem__(self, position: int) -> int:
        raise Boom


class RaisingItem(RaisingSequence):
    def __len__(self) -> int:
        return 2


class Endless:
    """A sequence without an end, and with a length that says otherwise."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, position: int) -> int:
        return 2

    def __iter__(self) -> Any:
        while True:
            yield 2


class Shrinking(list[Any]):
    """Grows shorter while it is read."""

    def __getitem__(self, position: Any) -> Any:
        value = super().__getitem__(position)
        self.clear()
        return value


class ShrinksList:
    """An integer that empties the list that contains it."""

    def __init__(self, owner: list[Any]) -> None:
        self.owner = owner

    def __index__(self) -> int:
        self.owner.clear()
        return 2


class RaisingRepr:
    def __repr__(self) -> str:
        raise Boom


class Recursive:
    """Its attributes are more of itself."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__gt_dims__", "__array_interface__"):
            raise AttributeError(name)
        return Recursive()


class RaisingAttributes:
    def __getattr__(self, name: str) -> Any:
        raise Boom


def shrinking_shape() -> list[Any]:
    shape: list[Any] = []
    shape.extend([ShrinksList(shape), 3, 4])
    return shape


HOSTILE = [
    RaisingIndex(),
    LyingIndex(),
    RaisingSequence(),
    RaisingItem(),
    Shrinking([1, 2]),
    RaisingRepr(),
    Recursive(),
    RaisingAttributes(),
    object(),
    type,
    float("nan"),
    float("inf"),
    10**5000,
    -(10**5000),
    "\ud800",
    "\0",
    "I\0",
    b"\xff" * 1000,
    "x" * 100_000,
    (1,) * 100_000,
    [[]],
    [[[[1]]]],
    {},
    set(),
    ...,
    NotImplemented,
    lambda *a, **k: 1 / 0,
    np.float64("nan"),
    np.array([], object),
    np.datetime64("NaT"),
    iter([]),
]
PARAMETERS = [
    "dtype",
    "backend",
    "device",
    "layout",
    "alignment_size",
    "aligned_index",
    "dims",
    "populate",
]
FUNCTIONS = ["allocate", "plan", "empty", "zeros", "ones", "full"]
LIKE = ["empty_like", "zeros_like", "ones_like", "full_like", "from_array"]


def attempt(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    """Calls; an exception is an answer (but not MemoryError for small shapes, and never SystemError)."""
    try:
        return function(*arguments, **keywords)
    except SystemError:
        raise
    except Exception as error:  # noqa: BLE001
        assert not isinstance(error, RuntimeError) or "defect" not in str(error)
        return error


@pytest.mark.parametrize("parameter", PARAMETERS)
@pytest.mark.parametrize("name", [*FUNCTIONS, *LIKE])
def test_hostile_values_of_every_parameter_are_answered(name: str, parameter: str) -> None:
    first = np.zeros((2, 3)) if name in LIKE else (2, 3)
    more = (1,) if name.startswith("full") else ()
    for value in HOSTILE:
        if parameter == "dtype" and isinstance(value, type):
            continue  # dtype=type is object, as for NumPy: tested elsewhere
        attempt(getattr(gridbuf, name), first, *more, **{parameter: value})


@pytest.mark.parametrize("name", FUNCTIONS)
def test_hostile_shapes_are_answered(name: str) -> None:
    more = (1,) if name.startswith("full") else ()
    for value in [*HOSTILE, shrinking_shape()]:
        result = attempt(getattr(gridbuf, name), value, *more)
        assert isinstance(result, Exception) or result.ndim <= 1


@pytest.mark.parametrize("name", LIKE)
def test_hostile_data_are_answered(name: str) -> None:
    more = (1,) if name.startswith("full") else ()
    for value in HOSTILE:
        if isinstance(value, tuple) and len(value) > 1000:
            continue  # a legal array
        attempt(getattr(gridbuf, name), value, *more)


def test_exceptions_of_foreign_objects_reach_the_caller() -> None:
    for keywords in (
        {"shape": (RaisingIndex(), 2)},
        {"shape": RaisingSequence()},
        {"shape": RaisingItem()},
        {"shape": (2, 3), "alignment_size": RaisingIndex()},
        {"shape": (2, 3), "aligned_index": RaisingItem()},
        {"shape": (2, 3), "layout": RaisingSequence()},
        {"shape": (2, 3), "dims": RaisingItem()},
    ):
        with pytest.raises(Boom):
            gridbuf.empty(**keywords)
    with pytest.raises(Boom):
        gridbuf.allocate((2, 3))[RaisingIndex()]
    with pytest.raises(Boom):
        gridbuf.allocate((2, 3))[RaisingIndex() : 2]
    with pytest.raises(Boom):
        gridbuf.get_dims(RaisingAttributes())


def test_a_sequence_is_read_no_further_than_its_length() -> None:
    assert gridbuf.empty(Endless()).shape == (2, 2, 2)


@pytest.mark.parametrize("name", [n for n in dir(gridbuf.Buffer) if not n.startswith("__")])
def test_methods_answer_hostile_arguments(name: str) -> None:
    buffer = gridbuf.ones((2, 3)).base
    member = getattr(buffer, name)
    for value in HOSTILE:
        if callable(member):
            attempt(member, value)
            attempt(member, value, value)
            attempt(member, no_such=value)


@pytest.mark.parametrize("key", ["stream", "max_version", "dl_device", "copy"])
def test_dlpack_answers_hostile_arguments(key: str) -> None:
    buffer = gridbuf.ones((2, 3)).base
    for value in [*HOSTILE, (RaisingIndex(), 0), (RaisingAttributes(), 0), (1, 10**5000)]:
        attempt(buffer.__dlpack__, **{key: value})
    for value in HOSTILE:
        attempt(lambda value=value: buffer[value])
        attempt(buffer.__array__, value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner),
        max_leaves=6,
    ),
    st.sampled_from(["shape", *PARAMETERS]),
)
@settings(max_examples=500)
def test_any_value_of_any_parameter_is_a_buffer_or_the_right_error(value: Any, name: str) -> None:
    keywords = {"shape": (2, 3), **{name: value}}
    try:
        plan = gridbuf.plan(**keywords)
    except (TypeError, ValueError, gridbuf.DeviceUnavailableError) as error:
        assert len(str(error)) < 2000
    else:
        assert plan.ndim == len(plan.shape)


# ---- Objects are complete or do not exist. ----


def test_a_buffer_cannot_be_made_by_calling_the_type() -> None:
    for make in (
        gridbuf.Buffer,
        lambda: gridbuf.Buffer((2, 3)),
        lambda: gridbuf.Buffer.__new__(gridbuf.Buffer),
        lambda: object.__new__(gridbuf.Buffer),
        gridbuf.LayoutPlan,
        lambda: gridbuf.LayoutPlan.__new__(gridbuf.LayoutPlan),
        lambda: object.__new__(gridbuf.LayoutPlan),
    ):
        with pytest.raises(TypeError):
            make()
    with pytest.raises(TypeError, match="gridbuf.allocate"):
        gridbuf.Buffer()


def test_the_types_cannot_be_subclassed_or_changed() -> None:
    for base in (gridbuf.Buffer, gridbuf.LayoutPlan):
        with pytest.raises(TypeError):
            type("Sub", (base,), {})
    with pytest.raises(TypeError):
        gridbuf.Buffer.shape = 5
    buffer = gridbuf.allocate((2,))
    for change in (
        lambda: setattr(buffer, "shape", (3,)),
        lambda: setattr(buffer, "new", 1),
        lambda: delattr(buffer, "dtype"),
        lambda: setattr(buffer, "__class__", int),
        lambda: buffer.__setitem__(0, 1),
        lambda: buffer.__setstate__({}),
    ):
        with pytest.raises((AttributeError, TypeError)):
            change()
    assert buffer.shape == (2,)
    for change in (lambda: operator.setitem(buffer, 0, 1), lambda: operator.delitem(buffer, 0)):
        with pytest.raises(TypeError, match=r"write buffer\.to_numpy\(\)\[\.\.\.\] = value"):
            change()


def test_descriptors_refuse_other_objects() -> None:
    for kind in (gridbuf.Buffer, gridbuf.LayoutPlan):
        for descriptor in vars(kind).values():
            if inspect.isgetsetdescriptor(descriptor):
                with pytest.raises(TypeError):
                    descriptor.__get__(object(), object)
            elif inspect.ismethoddescriptor(descriptor) and not isinstance(
                descriptor, staticmethod
            ):
                with pytest.raises(TypeError):
                    descriptor(object())


def test_support_probes_never_raise() -> None:
    buffer = gridbuf.allocate((2,), "M8[s]")
    for name in (
        "__array_interface__",
        "__cuda_array_interface__",
        "__dlpack__",
        "__array_struct__",
    ):
        assert hasattr(buffer, name) in (True, False)
    for name in ("__gt_dims__", "__gt_origin__", "__gt_data_interface__", "default_origin"):
        assert hasattr(buffer, name) in (True, False)


def test_weak_references_and_callbacks() -> None:
    buffer = gridbuf.allocate((2, 3))
    seen = []
    reference = weakref.ref(buffer, lambda ref: seen.append(ref()))
    assert reference() is buffer
    del buffer
    gc.collect()
    assert reference() is None
    assert seen == [None]


def test_a_dtype_that_refers_back_does_not_upset_the_collector() -> None:
    box: list[Any] = []
    dtype = np.dtype("f8", metadata={"box": box})
    box.append(gridbuf.allocate((2,), dtype))
    del box, dtype
    gc.collect()


def test_warnings_as_errors_reach_the_caller() -> None:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((RuntimeWarning, OverflowError)):
            gridbuf.full((2,), 1e300, np.float32)


def test_deep_recursion_is_a_recursion_error() -> None:
    nested: Any = 3
    for _ in range(100_000):
        nested = [nested]
    for function in (gridbuf.empty, gridbuf.zeros_like):
        assert isinstance(attempt(function, nested), Exception)
    while isinstance(nested, list):
        nested = nested.pop()


def test_the_interpreter_has_no_error_left() -> None:
    attempt(gridbuf.empty, RaisingRepr())
    assert sys.exc_info() == (None, None, None)
    assert gridbuf.zeros((2,)).sum() == 0
