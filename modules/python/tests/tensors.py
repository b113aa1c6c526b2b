"""Every kind of tensor that PyTorch has: those whose memory has their values, and those that no import may read."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")


class Tagged(torch.Tensor):  # type: ignore[misc, name-defined]
    """A subclass without other functions."""


class Functional(torch.Tensor):  # type: ignore[misc, name-defined]
    """A subclass that sees its functions."""

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None):
        return super().__torch_function__(function, types, args, kwargs or {})


class Wrapper(torch.Tensor):  # type: ignore[misc, name-defined]
    """A subclass without memory, whose elements another tensor has."""

    @staticmethod
    def __new__(cls, elements: Any, offset: int = 0) -> Any:
        return torch.Tensor._make_wrapper_subclass(
            cls, elements.shape, elements.stride(), storage_offset=offset, dtype=elements.dtype
        )

    def __init__(self, elements: Any, offset: int = 0) -> None:
        self.elements = elements

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None):
        raise NotImplementedError(str(function))


def numbers(*shape: int) -> Any:
    return torch.arange(1, 1 + torch.Size(shape).numel(), dtype=torch.float64).reshape(shape)


def fake(*shape: int) -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return torch.ones(*shape, dtype=torch.float64)


def complex_numbers() -> Any:
    return torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex128)


# Their memory has their values: every import takes them.
READABLE: dict[str, Callable[[], Any]] = {
    "dense": lambda: numbers(3),
    "two dimensions": lambda: numbers(2, 3),
    "a view": lambda: numbers(4, 6)[1::2, ::3],
    "transposed": lambda: numbers(2, 3).T,
    "0-d": lambda: torch.tensor(1.5, dtype=torch.float64),
    "empty": lambda: torch.empty(0, 3),
    "a view of nothing": lambda: torch.empty(0, 3)[:, 1:],
    "expanded": lambda: numbers(1).expand(3),
    "stride 0": lambda: numbers(3, 1).expand(3, 2),
    "bool": lambda: torch.tensor([True, False]),
    "int8": lambda: torch.tensor([1, -2], dtype=torch.int8),
    "uint16": lambda: torch.tensor([1, 65535], dtype=torch.uint16),
    "float16": lambda: torch.tensor([1.5, -2.0], dtype=torch.float16),
    "complex": complex_numbers,
    "imaginary parts": lambda: complex_numbers().imag,
    "resolved": lambda: complex_numbers().conj().resolve_conj(),
    "conjugated twice": lambda: complex_numbers().conj().conj(),
    "detached": lambda: numbers(3).requires_grad_().detach(),
    "a parameter without a gradient": lambda: torch.nn.Parameter(numbers(3), requires_grad=False),
    "a subclass": lambda: numbers(3).as_subclass(Tagged),
    "a subclass with functions": lambda: numbers(3).as_subclass(Functional),
    "of inference mode": lambda: torch.inference_mode()(numbers)(3),
}
# NumPy has no name for their types.
NARROW: dict[str, Callable[[], Any]] = {
    "bfloat16": lambda: numbers(3).to(torch.bfloat16),
    "float8": lambda: numbers(3).to(torch.float8_e4m3fn),
}
# Their memory does not have their values, or is not to be written.
REFUSED: dict[str, Callable[[], Any]] = {
    "conjugated": lambda: complex_numbers().conj(),
    "a view of conjugated": lambda: complex_numbers().conj()[1:],
    "adjoint": lambda: complex_numbers().reshape(2, 1).mH,
    "negated": lambda: torch._neg_view(numbers(3)),
    "imaginary parts of conjugated": lambda: complex_numbers().conj().imag,
    "a subclass, negated": lambda: torch._neg_view(numbers(3)).as_subclass(Tagged),
    "with a gradient": lambda: numbers(3).requires_grad_(),
    "0-d with a gradient": lambda: numbers(3).requires_grad_()[0],
    "computed with a gradient": lambda: numbers(3).requires_grad_() * 2,
    "a parameter": lambda: torch.nn.Parameter(numbers(3)),
    "a subclass with a gradient": lambda: numbers(3).as_subclass(Tagged).requires_grad_(),
    "sparse": lambda: torch.eye(3).to_sparse(),
    "sparse CSR": lambda: torch.eye(3).to_sparse_csr(),
    "sparse CSC": lambda: torch.eye(3).to_sparse_csc(),
    "sparse BSR": lambda: torch.eye(4).to_sparse_bsr((2, 2)),
    "of MKL-DNN": lambda: torch.ones(3).to_mkldnn(),
    "meta": lambda: torch.ones(3, device="meta"),
    "fake": lambda: fake(3),
    "a view of fake": lambda: fake(3)[1:],
    "far into fake": lambda: fake(100_000)[50_000:50_003],
    "zeros without memory": lambda: torch._efficientzerotensor(3),
    "a view of zeros without memory": lambda: torch._efficientzerotensor(3)[1:],
    "a wrapper": lambda: Wrapper(numbers(3)),
    "a wrapper with an offset": lambda: Wrapper(numbers(3), 5),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "jagged": lambda: torch.nested.nested_tensor(
        [torch.ones(2), torch.ones(3)], layout=torch.jagged
    ),
    "half complex": lambda: torch.ones(3, dtype=torch.complex32),
}
# Within a function of PyTorch: the tensor that the function gets.
WITHIN: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "vmap": lambda use: torch.func.vmap(use)(numbers(2, 3)),
    "grad": lambda use: torch.func.grad(lambda tensor: use(tensor).sum())(numbers(3)),
    "functionalize": lambda use: torch.func.functionalize(use)(numbers(3)),
}

# What PyTorch and gridbuf raise of them.
REFUSALS = (BufferError, NotImplementedError, RuntimeError, TypeError, ValueError)


def values(tensor: Any) -> Any:
    """The values of a tensor, by PyTorch's own means: an ndarray."""
    return tensor.detach().resolve_conj().resolve_neg().numpy()


def shape(tensor: Any) -> tuple[int, ...]:
    """The extents of a tensor; 3 for those that are symbols, and (2, 3) if it has none."""
    try:
        return tuple(extent if type(extent) is int else 3 for extent in tensor.shape)
    except RuntimeError:  # A nested tensor.
        return 2, 3


@contextlib.contextmanager
def unchanged(tensor: Any) -> Iterator[None]:
    """Checks that nothing writes to the memory of the tensor, if it has one."""
    try:
        memory = torch.tensor((), dtype=torch.uint8).set_(tensor.detach().untyped_storage())
        before = memory.clone() if memory.data_ptr() else None
    except (NotImplementedError, RuntimeError):
        before = None
    yield
    if before is not None:
        assert torch.equal(memory, before)
