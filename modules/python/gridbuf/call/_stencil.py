"""From a function with annotated parameters to a stencil. The protocol of its calls is in the compiled core.

A stencil keeps what was declared, and nothing of any call: which layout a field has, where it lies and how large it is
are found out, and checked, every time.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import copy_context
from functools import partial, update_wrapper
from importlib import import_module
from types import MethodType
from typing import Any, Literal, overload

from .. import _core
from ._annotations import FieldType, field_type_of

__all__ = ["ExpensiveCopyWarning", "SlowFieldWarning", "Stencil", "stencil"]

_KEYWORDS = ("origin", "domain")

# NumPy computes with any strides: there, a layout that was asked for is a matter of speed.
_INTERPRETED = ("debug", "numpy")


class ExpensiveCopyWarning(UserWarning):
    """Fields were copied to the side where a stencil computes, and back. Python shows it once per call site by default."""


class SlowFieldWarning(UserWarning):
    """A field lies in memory as the backend does not like it. The result is right, and late."""


class Stencil:
    """A callable over fields; made by `stencil`.

    Calls take the function's own arguments, and two keywords:

      origin: where the computation begins, in points: a dict of tuples by field (`"_all_"` for the others), or one tuple
        for all. Entries are in the annotation's order. Without it a field's own origin counts, else its lower halo, else 0.
      domain: how many points there are to compute, along I, J and K as far as any field has them. Without it, the most
        that all fields have, upper halos left out.

    Both are handed to the function if its signature names them.

    Attributes:
      backend: the name that it was given, or None.
      device: "gpu" if it computes there, else None.
      fields: what it asks of its fields, by parameter.
      writes: the names of the fields that it is taken to write.
    """

    __wrapped__: Callable[..., Any]
    __name__: str

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str,
        signature: inspect.Signature,
        fields: Mapping[str, FieldType],
        backend: str | None,
        device: Literal["gpu"] | None,
        writes: Sequence[str] | None,
        on_wrong_device: str,
        reach: Mapping[str, tuple[tuple[int, int], ...]] | None = None,
    ) -> None:
        update_wrapper(self, function)
        self.backend = backend
        self.device = device
        self.fields = dict(fields)
        self.writes = tuple(fields) if writes is None else tuple(writes)
        parameters = [one for one in signature.parameters.values() if one.name not in _KEYWORDS]
        self._bound = signature.replace(parameters=parameters)
        self.__signature__ = _with_keywords(signature)
        index = {parameter.name: i for i, parameter in enumerate(_named(parameters))}
        self._call = _core._make_caller(
            _declared_parameters(parameters),
            tuple(
                _declared_field(
                    key, index[key], kind, backend, key in self.writes, (reach or {}).get(key)
                )
                for key, kind in fields.items()
            ),
            (
                name,
                backend or "",
                device == "gpu",
                *(key in signature.parameters for key in _KEYWORDS),
                writes is not None,
                on_wrong_device == "copy",
            ),
        )

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return self._call(self.__wrapped__, args, kwargs, self)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """As a function in a class: a method."""
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return (
            f"<gridbuf.Stencil {self.__name__}{self.__signature__} on {self.backend or 'the host'}>"
        )


@overload
def stencil(func: Callable[..., Any], /) -> Stencil: ...
@overload
def stencil(
    func: None = None,
    /,
    *,
    backend: str | None = None,
    writes: str | Iterable[str] | None = None,
    on_wrong_device: Literal["copy", "raise"] = "copy",
) -> Callable[[Callable[..., Any]], Stencil]: ...
@overload
def stencil(
    func: Callable[..., Any],
    /,
    *,
    backend: str | None = None,
    writes: str | Iterable[str] | None = None,
    on_wrong_device: Literal["copy", "raise"] = "copy",
) -> Stencil: ...


def stencil(
    func: Callable[..., Any] | None = None,
    /,
    *,
    backend: str | None = None,
    writes: str | Iterable[str] | None = None,
    on_wrong_device: Literal["copy", "raise"] = "copy",
) -> Stencil | Callable[[Callable[..., Any]], Stencil]:
    """Makes a stencil of a function whose parameters are annotated with `Field[...]`, or of a stencil object of GT4Py.

    The function gets each field as a view of the whole array with its dimensions in the annotation's order: an ndarray,
    or a `cupy.ndarray` where it computes on a device. Other parameters are its own affair.

    Args:
      func: the function. Without it, a decorator.
      backend: a preset (`gridbuf.presets()`). It says on which side the function computes, and which layout is fast.
        None: the host.
      writes: the names of the fields that it writes; None: it may write all. Only these are touched, marked as modified,
        and copied back.
      on_wrong_device: what to do about a field that only the other side has: "copy" it there, and back if it is written,
        with one ExpensiveCopyWarning per call site; or "raise" GTNoSuchBufferError.

    Raises:
      TypeError: no parameter is a field, or what cannot be called to the end (coroutines, generators).
      ValueError: an unknown backend, or a name in `writes` that is no field.
    """
    if func is None:
        return partial(stencil, backend=backend, writes=writes, on_wrong_device=on_wrong_device)
    if on_wrong_device not in ("copy", "raise"):
        raise ValueError(
            f'on_wrong_device is {on_wrong_device!r}, but must be "copy" or "raise"; "copy" is the default'
        )
    if all(hasattr(func, name) for name in ("field_info", "parameter_info", "freeze")):
        return _of_gt4py(func, backend, writes, on_wrong_device)
    _require_plain(func)
    name = getattr(func, "__name__", type(func).__name__)
    signature, fields = _declaration(func, name)
    return Stencil(
        func,
        name=name,
        signature=signature,
        fields=fields,
        backend=backend,
        device=None if backend is None else device_of(backend),
        writes=_checked_writes(writes, fields, name),
        on_wrong_device=on_wrong_device,
    )


def _of_gt4py(
    func: Any, backend: str | None, writes: str | Iterable[str] | None, on_wrong_device: str
) -> Stencil:
    from ._gt4py import declaration

    if backend not in (None, func.backend) or writes is not None:
        raise ValueError(
            f"the stencil object of GT4Py knows its backend, {func.backend!r}, and what it writes, but backend= is "
            f"{backend!r} and writes= is {writes!r}; leave both out"
        )
    return Stencil(**declaration(func), on_wrong_device=on_wrong_device)


# ---- What a function declares. ----


def _require_plain(func: Any) -> None:
    if not callable(func):
        raise TypeError(
            f"stencil() is given {func!r}, which cannot be called; put it on a function, or pass options by keyword"
        )
    kinds = {
        "a coroutine function": inspect.iscoroutinefunction(func),
        "a generator function": inspect.isgeneratorfunction(func),
        "an asynchronous generator function": inspect.isasyncgenfunction(func),
    }
    for kind, found in kinds.items():
        if found:
            raise TypeError(
                f"stencil() is given {func!r}, {kind}, which returns before it computes, when its fields are released "
                "already; make a stencil of a plain function, and call that"
            )


def _declaration(
    func: Callable[..., Any], name: str
) -> tuple[inspect.Signature, dict[str, FieldType]]:
    """The function's signature, and the types of its fields by parameter."""
    try:
        signature = inspect.signature(func, eval_str=True)
    except NameError as error:
        raise TypeError(
            f"an annotation of stencil {name!r} cannot be evaluated: {error}; define that name where the function is "
            "defined, or leave out `from __future__ import annotations`"
        ) from error
    fields = {}
    for parameter in signature.parameters.values():
        kind = field_type_of(parameter.annotation)
        if kind is None:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(
                f"parameter {parameter} of stencil {name!r} is a field, but stands for any number of arguments; give "
                "each field a parameter of its own"
            )
        if parameter.name in _KEYWORDS:
            raise TypeError(
                f"parameter {parameter.name!r} of stencil {name!r} is a field, but a keyword of every call has that "
                "name; rename it"
            )
        if parameter.default is not parameter.empty and parameter.default is not None:
            raise TypeError(
                f"the default of field {parameter.name!r} of stencil {name!r} is {parameter.default!r}, but must be "
                "None, for a field that may be left out; pass arrays when you call it"
            )
        fields[parameter.name] = kind
    if not fields:
        raise TypeError(
            f"no parameter of stencil {name!r} is annotated as a field; annotate them, for example u: Field[np.float64]"
        )
    return signature, fields


def _checked_writes(
    writes: str | Iterable[str] | None, fields: Mapping[str, FieldType], name: str
) -> tuple[str, ...] | None:
    if writes is None:
        return None
    names = (writes,) if isinstance(writes, str) else tuple(writes)
    for one in names:
        if one not in fields:
            raise ValueError(
                f"writes of stencil {name!r} names {one!r}, but its fields are {', '.join(map(repr, fields))}; name "
                "parameters that are annotated with Field[...]"
            )
    return names


def _with_keywords(signature: inspect.Signature) -> inspect.Signature:
    """The signature of calls: origin and domain are keywords of every one."""
    parameters = [one for one in signature.parameters.values() if one.name not in _KEYWORDS]
    last = len(parameters)
    if parameters and parameters[-1].kind is inspect.Parameter.VAR_KEYWORD:
        last -= 1
    parameters[last:last] = [
        inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=None) for key in _KEYWORDS
    ]
    return signature.replace(parameters=parameters)


# ---- For the core. ----


def _named(parameters: Sequence[inspect.Parameter]) -> list[inspect.Parameter]:
    """Those with a name that an argument can have: positional ones first, as they are in a signature."""
    stars = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [parameter for parameter in parameters if parameter.kind not in stars]


def _declared_parameters(parameters: Sequence[inspect.Parameter]) -> tuple[Any, ...]:
    kinds = [parameter.kind for parameter in parameters]
    only = kinds.count(inspect.Parameter.POSITIONAL_ONLY)
    return (
        tuple((one.name, one.default is one.empty) for one in _named(parameters)),
        only,
        only + kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD),
        inspect.Parameter.VAR_POSITIONAL in kinds,
        inspect.Parameter.VAR_KEYWORD in kinds,
    )


def _declared_field(
    name: str,
    parameter: int,
    kind: FieldType,
    backend: str | None,
    is_written: bool,
    reach: tuple[tuple[int, int], ...] | None,
) -> tuple[Any, ...]:
    layout, alignment = kind.layout, kind.alignment_bytes
    if kind.preset is not None:
        preset = _preset(kind.preset, kind.axes)
        layout = preset[0] if layout is None else layout
        alignment = preset[1] if alignment is None else alignment
    asked: tuple[Any, int] = (layout, 1 if alignment is None else alignment)
    if backend in _INTERPRETED:
        relied, preferred = (None, 1), asked
    else:
        fast = (None, 1) if backend is None else _preset(backend, kind.axes)
        relied = asked
        # What is relied on is checked, and no matter of speed.
        preferred = (
            fast[0] if layout is None else None,
            fast[1] if alignment is None else 1,
        )
    return (
        name,
        parameter,
        kind.axes,
        kind.dtype,
        kind.data_shape,
        *relied,
        *preferred,
        is_written,
        reach,
    )


def _preset(name: str, axes: tuple[str, ...]) -> tuple[tuple[int, ...], int]:
    """The layout and the alignment in bytes that a preset gives to an array over `axes`."""
    plan = _core.plan((1,) * len(axes), backend=name, dims=axes)
    return plan.layout, plan.alignment_size


def device_of(backend: str) -> Literal["gpu"] | None:
    """Where a backend computes. ValueError, with close matches, for a name that is no preset."""
    _core.plan((1,), backend=backend)
    return _core.presets()[backend]["device"]


# ---- What the core calls. ----


def _explain(stencil: Stencil, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    own = {key: value for key, value in kwargs.items() if key not in _KEYWORDS}
    try:
        stencil._bound.bind(*args, **own)
    except TypeError as error:
        raise TypeError(f"stencil {stencil.__name__!r}: {error}") from None


def _on_device(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    places: Sequence[int | str],
    arrays: Sequence[Any],
) -> Any:
    """`function(*args, **kwargs)` where the device's memory can be touched; its fields are `arrays`, at `places`."""
    if not _core._device_emulated_is_on():
        cupy = import_module("cupy")  # They are its arrays.
        with cupy.cuda.ExternalStream(_core._device_current_stream()):
            return function(*args, **kwargs)

    def kernel(*seen: Any) -> Any:
        positional = list(args)
        for place, array in zip(places, seen):
            if isinstance(place, str):
                kwargs[place] = array
            else:
                positional[place] = array
        return function(*positional, **kwargs)

    # In our context: numpy.errstate holds in a kernel, too.
    return _core._run_kernel(partial(copy_context().run, kernel), *arrays)


def _note(error: BaseException, field: str | None, step: str) -> None:
    where = f"field {field!r} of a stencil" if field is not None else "a stencil's call"
    error.add_note(f"raised by {where}, step: {step}")


def _later(first: BaseException, later: BaseException, field: str | None, step: str) -> None:
    """Hangs `later` on `first`, the exception of the call, as its innermost context. Shown with it, and never lost."""
    _note(later, field, step)
    chain = [first]
    while chain[-1].__context__ is not None:
        chain.append(chain[-1].__context__)
    if not any(error is later for error in chain):
        later.__context__ = None
        chain[-1].__context__ = later
    first.add_note(f"then {type(later).__name__} was raised by field {field!r}, step: {step}")


_core._set_call_helpers(_explain, _on_device, _later, _note, ExpensiveCopyWarning, SlowFieldWarning)
