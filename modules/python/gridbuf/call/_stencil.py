"""From a function with annotated parameters to a stencil, and the steps of its calls.

A stencil keeps its declaration, and nothing of any call: `StencilRules.bind` of the compiled core reads and checks the
fields every time, once per call. For most calls the rest is the function and the end of writes. Calls with foreign fields, copies or
warnings take more steps. Each step is for all fields, because acquiring one may move the memory of another.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, update_wrapper
from types import MethodType
from typing import Any, Literal, overload

from .. import _core
from .._dims import pairs_of
from .._stream import run_on_device
from . import _halos
from ._annotations import FieldType, field_type_of
from ._protocol import Step, finish, noted

_KEYWORDS = ("origin", "domain")

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

# NumPy computes with any strides: there, a layout that was asked for is a matter of speed.
_INTERPRETED = ("debug", "numpy")


class ExpensiveCopyWarning(UserWarning):
    """Fields are copied to the side where a stencil computes, and back.

    Python shows it once per call site by default (docs/spec.md 12.19).
    """


class SlowFieldWarning(UserWarning):
    """A field has a layout or alignment that is slow on the backend.

    The result is right (docs/spec.md 12.17).
    """


class Stencil:
    """A callable over fields; `stencil` makes it (docs/spec.md section 12).

    Calls take the function's own arguments, and three keywords. The first two are passed to the
    function if its signature names them.

    * `origin`: where the computation begins, in points: a dict of tuples by field (`"_all_"` for
      all others), or one tuple for all. Entries are in the annotation's order. Default: a field's
      own origin, else its lower halo, else 0.
    * `domain`: how many points to compute, along I, J and K as far as any field has them. Default:
      the most that all fields have, without upper halos.
    * `halo_check`: what to do about points of halos that are read and not valid, as in
      `set_halo_check`. Default: that of the field's decomposition, else of the process.

    Parameters
    ----------
    function : callable
        The function.
    name : str
        Its name in messages.
    signature : inspect.Signature
        Its parameters.
    fields : mapping of str to FieldType
        What the stencil asks of its fields, by parameter.
    backend : str or None
        A preset, or None.
    device : {None, "gpu"}
        Where the function computes.
    writes : sequence of str or None
        Fields that the function writes; None is all.
    on_wrong_device : {"copy", "raise"}
        What to do about a field that only the other side has.
    allow_alias : bool, default False
        Whether a field that is written may share elements with another field.
    reach : mapping of str to tuple, optional
        Points that the function reads around the domain, as (lower, upper) per dimension, by field.
        Without the mapping halos are not checked.
    reads : sequence of str, optional
        Fields that the function reads. Default: those of `reach`.

    Attributes
    ----------
    backend : str or None
        The preset.
    device : {None, "gpu"}
        Where the stencil computes.
    fields : dict of str to FieldType
        What the stencil asks of its fields, by parameter.
    writes : tuple of str
        The fields that the stencil is taken to write.
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
        allow_alias: bool = False,
        reach: Mapping[str, tuple[tuple[int, int], ...]] | None = None,
        reads: Sequence[str] | None = None,
    ) -> None:
        update_wrapper(self, function)
        self.backend = backend
        self.device = device
        self.fields = dict(fields)
        self.writes = tuple(fields) if writes is None else tuple(writes)
        parameters = [one for one in signature.parameters.values() if one.name not in _KEYWORDS]
        self.__signature__ = _with_keywords(signature)
        self._bound = signature.replace(parameters=parameters)
        self._complete = _complete_counts(parameters)
        self._name = name
        self._names = tuple(fields)
        self._memory = {key: _memory(kind, backend) for key, kind in fields.items()}
        self._passes_origin, self._passes_domain = (
            key in signature.parameters for key in _KEYWORDS
        )
        self._copies = on_wrong_device == "copy"
        order = [one.name for one in parameters if one.kind in _POSITIONAL]
        self._places = [_place(self._bound.parameters[key], order) for key in fields]
        # Such a call has the fields as arguments and nothing else, and its function gets their arrays and nothing else.
        passes_more = self._passes_origin or self._passes_domain or device == "gpu"
        is_plain = order == list(fields) and len(order) in self._complete and not passes_more
        self._plain_count = len(order) if is_plain else -1
        self._rules = _core._make_rules(
            name=name,
            on_device=device == "gpu",
            writes_are_declared=writes is not None,
            allow_alias=allow_alias,
            knows_reach=reach is not None,
        )
        for key, kind in fields.items():
            self._rules.add_field(
                name=key,
                dims=kind.axes,
                dtype=kind.dtype,
                data_shape=kind.data_shape,
                **self._memory[key],
                reach=(reach or {}).get(key),
                is_read=key in ((reach or {}) if reads is None else reads),
                is_written=key in self.writes,
                is_optional=signature.parameters[key].default is not inspect.Parameter.empty,
            )

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        count = len(args)
        fields: Sequence[Any] = args
        if count == self._plain_count and not kwargs:
            call = self._rules.bind_plain(args)
            if isinstance(call, list):
                return self.__wrapped__(*call)
        else:
            origins = origin = domain = None
            check = -1
            if kwargs:
                origin, domain = kwargs.pop("origin", None), kwargs.pop("domain", None)
                check = _halos.number_of(kwargs.pop("halo_check", None))
            if kwargs or count not in self._complete:
                self._require_fit(args, kwargs)
            if isinstance(origin, dict):
                origins, origin = self._by_field(origin)
            fields = [args[at] if at < count else kwargs.get(key) for key, at in self._places]
            call = self._rules.bind(fields, origins, origin, domain, mode=check)
        if not call.is_plain:
            return self._call_in_steps(call, fields, args, kwargs)
        try:
            result = self._run(call, call.arrays, args, kwargs)
            for i in call.written:
                call.end(i, True)
        except BaseException as error:
            call.has_failed = True
            finish(self._touches(call), error)
            raise
        return result

    def _call_in_steps(
        self,
        call: _core.BoundStencil,
        fields: Sequence[Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """A call with foreign fields, with memory on the other side, or with slow memory."""
        hooks: list[_core.FieldHooks | None] = [None] * len(fields)
        was_called = False
        try:
            if call.is_foreign:
                for i, field in enumerate(fields):
                    with noted(self._names[i], "acquire"):
                        hooks[i] = self._acquire(field)
                call.bind_acquired(hooks)
            if call.stale:
                _halos.handle(self._name, self._names, fields, call)
            self._warn(call)
            arrays = call.arrays
            copies = [(i, arrays[i], self._copy(call, i)) for i in call.wrong]
            for i, _, copy in copies:
                arrays[i] = _core._array_of(copy)
            for i in call.written:
                if i not in call.wrong:
                    call.begin_write(i)
            was_called = True
            result = self._run(call, arrays, args, kwargs)
            for i, source, copy in copies:
                if self._names[i] in self.writes and not source.readonly:
                    with noted(self._names[i], "copy back"):
                        call.begin_write(i)
                        _core.copyto(source, copy)
        except BaseException as error:
            call.has_failed = True
            finish(self._touches(call, was_called) + self._releases(hooks), error)
            raise
        finish(self._touches(call) + self._releases(hooks))
        return result

    def _acquire(self, field: Any) -> _core.FieldHooks | None:
        """Calls the hook of a foreign field; its hooks, or None."""
        hooks = _core._field_hooks(field, self.device == "gpu")
        if hooks is not None and hooks.acquire is not None:
            hooks.acquire()
        return hooks

    def _warn(self, call: _core.BoundStencil) -> None:
        """Warns of slow memory and of copies, at the line that calls the stencil."""
        for text in call.slow:
            warnings.warn(f"stencil {self._name!r}: {text}", SlowFieldWarning, stacklevel=4)
        if not call.wrong:
            return
        here, there = ("device", "host") if self.device == "gpu" else ("host", "device")
        names = [repr(self._names[i]) for i in call.wrong]
        if not self._copies:
            raise _core.GTNoSuchBufferError(
                f"field {names[0]}, all dimensions: its memory is on the {there} only, but stencil {self._name!r} computes "
                f'on the {here}; copy it with gridbuf.storage.storage(), or pass on_wrong_device="copy"'
            )
        warnings.warn(
            f"stencil {self._name!r} computes on the {here}, but only the {there} has the memory of field "
            f'{", ".join(names)}: each call copies it; allocate it where it is used, or with managed="gt4py"',
            ExpensiveCopyWarning,
            stacklevel=4,
        )

    def _copy(self, call: _core.BoundStencil, i: int) -> _core.Buffer:
        """A field's elements on the side of the call, laid out and aligned as the stencil wants them."""
        source, name = call.arrays[i], self._names[i]
        rule = self._memory[name]
        copy = _core.allocate(
            source.shape,
            source.dtype,
            dims=self.fields[name].axes,
            layout=rule["layout"] or rule["preferred_layout"] or source.layout,
            alignment_size=max(rule["alignment_size"], rule["preferred_alignment_size"]),
            aligned_index=[
                min(at, max(extent - 1, 0)) for at, extent in zip(call.origins[name], source.shape)
            ],
            memory="device" if self.device == "gpu" else "host",
        )
        _core.copyto(copy, source)
        return copy

    def _run(
        self,
        call: _core.BoundStencil,
        arrays: list[Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        if self._passes_origin:
            kwargs["origin"] = call.origins
        if self._passes_domain:
            kwargs["domain"] = call.domain
        if self.device == "gpu":
            return run_on_device(lambda _, *arrays: self._apply(args, kwargs, *arrays), arrays)
        if len(args) == self._plain_count:
            return self.__wrapped__(*arrays, **kwargs)
        return self._apply(args, kwargs, *arrays)

    def _apply(self, args: tuple[Any, ...], kwargs: dict[str, Any], *arrays: Any) -> Any:
        """Calls the function, with arrays where the fields were."""
        given = list(args)
        for (key, at), array in zip(self._places, arrays):
            if at < len(given):
                given[at] = array
            elif key in kwargs:
                kwargs[key] = array
        return self.__wrapped__(*given, **kwargs)

    def _touches(self, call: _core.BoundStencil, was_called: bool = True) -> list[Step]:
        return [(self._names[i], "touch", call.end, i, was_called) for i in call.written]

    def _releases(self, hooks: Sequence[_core.FieldHooks | None]) -> list[Step]:
        """In reverse order, as locks are released."""
        return [
            (name, "release", hook.release)
            for name, hook in reversed(list(zip(self._names, hooks)))
            if hook is not None and hook.release is not None
        ]

    def _require_fit(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """TypeError unless the arguments fit the parameters."""
        try:
            self._bound.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"stencil {self._name!r}: {error}") from None

    def _by_field(self, origin: dict[Any, Any]) -> tuple[list[Any], Any]:
        """The origins of the fields, and the one of all others."""
        for key in origin:
            if key not in self._names and key != "_all_":
                raise ValueError(
                    f"origin is for {key!r}, but must be for fields of stencil {self._name!r}: "
                    f"{', '.join(map(repr, self._names))}; correct the name, or use '_all_' for all others"
                )
        return [origin.get(name) for name in self._names], origin.get("_all_")

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
    allow_alias: bool = False,
    extents: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., Any]], Stencil]: ...
@overload
def stencil(
    func: Callable[..., Any],
    /,
    *,
    backend: str | None = None,
    writes: str | Iterable[str] | None = None,
    on_wrong_device: Literal["copy", "raise"] = "copy",
    allow_alias: bool = False,
    extents: Mapping[str, Any] | None = None,
) -> Stencil: ...


def stencil(
    func: Callable[..., Any] | None = None,
    /,
    *,
    backend: str | None = None,
    writes: str | Iterable[str] | None = None,
    on_wrong_device: Literal["copy", "raise"] = "copy",
    allow_alias: bool = False,
    extents: Mapping[str, Any] | None = None,
) -> Stencil | Callable[[Callable[..., Any]], Stencil]:
    """Make a stencil of a function whose parameters are annotated with `Field[...]`.

    The function gets each field as a view of the whole array with its dimensions in the
    annotation's order: an ndarray, or a `cupy.ndarray` where it computes on a device. Other
    parameters are passed on. Rules: docs/spec.md section 12.

    Parameters
    ----------
    func : callable, optional
        The function, or a stencil object of GT4Py. Without it, `stencil` returns a decorator.
    backend : str, optional
        A preset (`gridbuf.presets`). It says on which side the function computes, and which layout
        is fast. Default: the host.
    writes : str or iterable of str, optional
        Names of the fields that the function writes. Only these are touched, marked as modified and
        copied back. Default: all.
    on_wrong_device : {"copy", "raise"}, default "copy"
        What to do about a field that only the other side has. "copy" copies it there, and back if
        it is written, with one ExpensiveCopyWarning per call site. "raise" is a
        GTNoSuchBufferError.
    allow_alias : bool, default False
        Whether a field that is written may share elements with another field of the call. Such a
        call is a ValueError, because a stencil that reads neighbours then reads values that it
        has just written. Allow it where the function is correct in place.
    extents : mapping of str to int or sequence, optional
        How many points around the domain the function reads of a field, by name: a number for all
        dimensions, or a number or a pair (lower, upper) for each. Fields without an entry are read
        in the domain only, or not at all if they are in `writes`. With extents each call checks
        that the halos are valid so deep (docs/spec.md 9.81). GT4Py's stencils know theirs.

    Returns
    -------
    Stencil or callable
        The stencil; without `func` a decorator.

    Raises
    ------
    TypeError
        No parameter is a field, or `func` is a coroutine or a generator function.
    ValueError
        The backend is unknown, a name in `writes` or `extents` is not a field, or an extent is
        negative.

    Examples
    --------
    >>> import gridbuf, numpy
    >>> @gridbuf.stencil(writes="out")
    ... def double(field: gridbuf.Field[numpy.float64], out: gridbuf.Field[numpy.float64]):
    ...     out[...] = 2 * field
    >>> out = gridbuf.zeros((2, 3, 4))
    >>> double(gridbuf.ones((2, 3, 4)), out)
    >>> float(out.sum())
    48.0
    """
    if func is None:
        return partial(
            stencil,
            backend=backend,
            writes=writes,
            on_wrong_device=on_wrong_device,
            allow_alias=allow_alias,
            extents=extents,
        )
    if on_wrong_device not in ("copy", "raise"):
        raise ValueError(
            f'on_wrong_device is {on_wrong_device!r}, but must be "copy" or "raise"; "copy" is the default'
        )
    if all(hasattr(func, name) for name in ("field_info", "parameter_info", "freeze")):
        return _of_gt4py(func, backend, writes, on_wrong_device, allow_alias, extents)
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
        writes=(written := _checked_writes(writes, fields, name)),
        on_wrong_device=on_wrong_device,
        allow_alias=allow_alias,
        reach=_checked_extents(extents, fields, written or tuple(fields), name),
    )


def _of_gt4py(
    func: Any,
    backend: str | None,
    writes: str | Iterable[str] | None,
    on_wrong_device: str,
    allow_alias: bool,
    extents: Any,
) -> Stencil:
    from ._gt4py import declaration

    if backend not in (None, func.backend) or writes is not None or extents is not None:
        raise ValueError(
            f"the stencil object of GT4Py knows its backend, {func.backend!r}, what it writes and its extents, but backend= "
            f"is {backend!r}, writes= is {writes!r} and extents= is {extents!r}; leave them out"
        )
    return Stencil(**declaration(func), on_wrong_device=on_wrong_device, allow_alias=allow_alias)


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
                f"stencil() is given {func!r}, {kind}, which returns before it computes; make a stencil of a plain "
                "function, and call that"
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
                "each field a separate parameter"
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
    writes: str | Iterable[str] | None,
    fields: Mapping[str, FieldType],
    name: str,
    keyword: str = "writes",
) -> tuple[str, ...] | None:
    if writes is None:
        return None
    names = (writes,) if isinstance(writes, str) else tuple(writes)
    for one in names:
        if one not in fields:
            raise ValueError(
                f"{keyword} of stencil {name!r} names {one!r}, but its fields are {', '.join(map(repr, fields))}; name "
                "parameters that are annotated with Field[...]"
            )
    return names


def _checked_extents(
    extents: Mapping[str, Any] | None,
    fields: Mapping[str, FieldType],
    written: Sequence[str],
    name: str,
) -> dict[str, tuple[tuple[int, int], ...]] | None:
    """The points around the domain that each field is read at: those of `extents`, and of others that are not written none."""
    if extents is None:
        return None
    _checked_writes(extents, fields, name, "extents")
    reach = {}
    for key, kind in fields.items():
        if key not in extents and key in written:
            continue
        given = extents.get(key, 0)
        entries = given if isinstance(given, Sequence) else [given] * len(kind.axes)
        pairs = pairs_of(entries, len(kind.axes), f"extents of field {key!r} of stencil {name!r}")
        reach[key] = tuple(
            pair if axis.isidentifier() else (0, 0) for axis, pair in zip(kind.axes, pairs)
        )
    return reach


def _with_keywords(signature: inspect.Signature) -> inspect.Signature:
    """The signature of calls: origin, domain and halo_check are keywords of every one."""
    parameters = [one for one in signature.parameters.values() if one.name not in _KEYWORDS]
    last = len(parameters)
    if parameters and parameters[-1].kind is inspect.Parameter.VAR_KEYWORD:
        last -= 1
    parameters[last:last] = [
        inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=None)
        for key in (*_KEYWORDS, "halo_check")
    ]
    return signature.replace(parameters=parameters)


# ---- For calls. ----


def _complete_counts(parameters: Sequence[inspect.Parameter]) -> set[int]:
    """The numbers of positional arguments that a call can have without any keyword."""
    order = [one for one in parameters if one.kind in _POSITIONAL]
    named = [one for one in parameters if one.kind is one.KEYWORD_ONLY]
    return {
        count
        for count in range(len(order) + 1)
        if all(one.default is not one.empty for one in [*order[count:], *named])
    }


def _place(parameter: inspect.Parameter, order: Sequence[str]) -> tuple[str, int]:
    """Where a field is among the arguments of a call: its keyword ("" for none), and its position."""
    keyword = "" if parameter.kind is parameter.POSITIONAL_ONLY else parameter.name
    return keyword, order.index(parameter.name) if parameter.name in order else sys.maxsize


def _memory(kind: FieldType, backend: str | None) -> dict[str, Any]:
    """The layout and the alignment that a stencil relies on, and those that are fast."""
    layout, alignment = kind.layout, kind.alignment_bytes
    if kind.preset is not None:
        preset = _preset(kind.preset, kind.axes)
        layout = preset[0] if layout is None else layout
        alignment = preset[1] if alignment is None else alignment
    relied: tuple[Any, int] = (layout, 1 if alignment is None else alignment)
    preferred: tuple[Any, int] = (None, 1)
    if backend in _INTERPRETED:
        relied, preferred = preferred, relied
    elif backend is not None:
        fast = _preset(backend, kind.axes)
        # What is relied on is checked, and no matter of speed.
        preferred = (fast[0] if layout is None else None, fast[1] if alignment is None else 1)
    return {
        "layout": relied[0],
        "alignment_size": relied[1],
        "preferred_layout": preferred[0],
        "preferred_alignment_size": preferred[1],
    }


def _preset(name: str, axes: tuple[str, ...]) -> tuple[tuple[int, ...], int]:
    """The layout and the alignment in bytes that a preset gives to an array over `axes`."""
    plan = _core.plan((1,) * len(axes), backend=name, dims=axes)
    return plan.layout, plan.alignment_size


def device_of(backend: str) -> Literal["gpu"] | None:
    """Where a backend computes. ValueError, with close matches, for a name that is not a preset."""
    _core.plan((1,), backend=backend)
    return _core.presets()[backend]["device"]
