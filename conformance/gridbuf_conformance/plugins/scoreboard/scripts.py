"""Scripts that repeat an exchange of a record. Up to 21 lines, which need the libraries and NumPy.

The array is NumPy's, and goes through a documented function of the library that passes it. For a
producer or an outcome that is not in the tables here, the script calls `repeat` of the suite.
A script prints "defect:" and exits with 1 where the outcome is harm.
"""

from __future__ import annotations

import contextlib
import faulthandler
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ... import libraries, named_consumers
from ...plan import Plan
from ...plan.views import ViewMap
from ...targets import Target, is_path, load
from .arrays import ARRAYS
from .records import HARM, OUTCOMES, Cell, Record

_MADE = {
    "numpy": "a",
    "numpy.field": "numpy.rec.fromarrays([numpy.zeros(a.shape, 'i1'), a]).f1",
    "array_api_strict": "array_api_strict.asarray(a)",
    "blosc2": "blosc2.asarray(a)",
    "bytes": "a.tobytes()",
    "jax": "jax.numpy.asarray(a)",
    "mlx": "mlx.core.array(a)",
    "onnxruntime": "onnxruntime.OrtValue.ortvalue_from_numpy(a)",
    "pyarrow": "pyarrow.array(a)",
    "pyarrow.tensor": "pyarrow.Tensor.from_numpy(a)",
    "pyzmq": "zmq.Frame(a.tobytes())",
    "tensorflow": "tensorflow.constant(a)",
    "torch": "torch.from_numpy(a)",
    "warp": "warp.array(a)",
    "xarray": "xarray.DataArray(a)",
}
"""How an array of a producer is made of NumPy's array `a`."""
_TAKEN = {
    "cffi.from_buffer": "cffi.FFI().buffer(cffi.FFI().from_buffer(x))",
    "jax.dlpack.from_dlpack": "jax.dlpack.from_dlpack(x)",
    "jax.numpy.asarray": "jax.numpy.asarray(x)",
    "mlx.asarray": "mlx.core.asarray(x)",
    "numpy.frombuffer": "numpy.frombuffer(x, 'uint8')",
    "pyarrow.BufferReader.readinto": "pyarrow.BufferReader(bytes(x)).readinto(x)",
    "pyarrow.py_buffer": "pyarrow.py_buffer(x)",
    "pyzmq.Frame": "zmq.Frame(x, copy=False).buffer",
    "tensorflow.constant": "tensorflow.constant(x)",
    "tensorflow.from_dlpack": "tensorflow.experimental.dlpack.from_dlpack(x.__dlpack__())",
    "torch.frombuffer": "torch.frombuffer(x, dtype=torch.uint8)",
    "warp.from_dlpack": "warp.from_dlpack(x)",
}
"""How a consumer takes `x`, if it is more than one function of its library."""
_SETUP = {"jax": 'jax.config.update("jax_enable_x64", True)', "warp": "warp.init()"}
_MODULE = re.compile(r"(?<![\w.'])((?:jax|mlx)\.\w+|[a-z]\w+)(?=\.\w+[.(])")
_TEXTS = {"bytes5": "S5", "str3": "U3"}
_ALIGNED = ("jax", "tensorflow")
"""Libraries that copy memory that is not aligned to 64 bytes."""
_BY_SUITE = ("aliasing lost", "hang", "crash", "unread", "became read-only", "not made")
_WRITABLE = {
    "AI": 'not result.__array_interface__["data"][1]',
    "PB": "not memoryview(result).readonly",
    "DL": "numpy.from_dlpack(result).flags.writeable",
}


def standalone(record: Record, cell: Cell, array: str) -> str:
    """A program that repeats one exchange; its header has its packages."""
    lines = _lines(cell, array)
    needed = {cell.source, cell.target} | ({"numpy"} if lines else set())
    packages = [*_packages(needed, record.libraries)] + ([] if lines else ["gridbuf-conformance"])
    quoted = ", ".join(f'"{package}"' for package in packages)
    message = cell.message(array)
    head = [
        "# /// script",
        f'# requires-python = "=={".".join(record.python.split(".")[:2])}.*"',
        f"# dependencies = [{quoted}]",
        "# ///",
        f'"""{cell.producer} passes `{array}` to {cell.consumer}: {cell.outcome(array)}."""',
    ]
    told = [f"# In the record: {message}"] if message else []
    return "\n".join([*head, *told, *(lines or _by_suite(cell, array))]) + "\n"


def _packages(names: set[str], versions: Mapping[str, str]) -> Iterator[str]:
    """The packages as an index has them: pillow for PIL, 2.13.0 for 2.13.0+cpu."""
    for name in sorted(names & versions.keys() - {"python"}):
        package, extra = name, None
        with contextlib.suppress(libraries.UnknownLibrary):
            library = libraries.find(name)
            package, extra = library.package or name, re.search(r"\[[\w,]+\]", library.install)
        yield f"{package}{extra[0] if extra else ''}=={versions[name].partition('+')[0]}"


def _by_suite(cell: Cell, array: str) -> list[str]:
    given = ", ".join(map(repr, (cell.producer, cell.consumer, array)))
    return ["from gridbuf_conformance.plugins.scoreboard import repeat", "", f"repeat({given})"]


def repeat(producer: str, consumer: str, array: str) -> None:
    """Repeats an exchange in this process and prints the outcome; exits with 1 where it is harm."""
    from .cells import _outcome, make, shown  # the program needs NumPy and more; readers do not

    faulthandler.enable()
    plan = ARRAYS[array].plan
    from_, to = load(Target(producer)), load(Target(consumer, side="consumer"))
    made, reason = make(from_, plan)
    print("passed:", type(made), reason or shown(made, plan), flush=True)
    del made
    seen = _outcome(from_, to, plan)
    is_harm = OUTCOMES[seen["outcome"]][0] in HARM
    print("defect:" if is_harm else "outcome:", seen["outcome"], seen["message"])
    raise SystemExit(int(is_harm))


# -- without the suite ---------------------------------------------------------------------------


def _lines(cell: Cell, array: str) -> list[str]:
    """The program after its header; empty if it needs the suite."""
    plan, outcome = ARRAYS[array].plan, cell.outcome(array)
    a, x, taken = (
        _array(plan, cell.target in _ALIGNED),
        _MADE.get(cell.producer),
        _taken(cell.consumer),
    )
    check = [*_check(outcome, cell.message(array), cell.flat)]
    if not (a and x and taken and check) or (plan.views and x != "a"):
        return []
    help_ = {"crash": ["faulthandler"], "lifetime broken": ["gc"]}.get(outcome, [])
    modules = dict.fromkeys([*help_, "numpy", *_MODULE.findall(f"{x} {taken[1]}"), taken[0]])
    lines = [f"import {', '.join(filter(None, modules))}", ""]
    tops = [module.partition(".")[0] for module in modules]
    lines += [text for name, text in _SETUP.items() if name in tops]
    lines += ["faulthandler.enable()"] if outcome == "crash" else []
    lines += [*a, *["a.flags.writeable = False"] * plan.readonly]
    return [*lines, f"x = {x}", f"result = {taken[1]}", *check]


def _taken(consumer: str) -> tuple[str, str] | None:
    """The module to import and the call; None if it is not known here."""
    if consumer in _TAKEN:
        return "", _TAKEN[consumer]
    target = consumer if is_path(consumer) else named_consumers.find(consumer).target
    module, _, name = target.partition(":")
    if module.endswith(".py") or module.startswith("gridbuf_conformance."):
        return None
    return ("", f"{name}(x)") if module == "builtins" else (module, f"{module}.{name}(x)")


def _check(outcome: str, message: str, is_flat: bool) -> Iterator[str]:
    """The lines that show an outcome; none where only the suite can."""
    expected = "a.tobytes()" if is_flat else "a.tolist()"
    read = "bytes(memoryview(result))" if is_flat else "numpy.asarray(result).tolist()"
    if outcome == "read-only lost":
        export = re.match(r"its (AI|PB|DL) export", message)
        yield from () if export else ("result[(0,) * a.ndim] = result[(0,) * a.ndim]",)
        yield f"is_defect = {_WRITABLE[export[1]] if export else True}"
        yield 'print("defect: the result can be written" if is_defect else "it cannot be written")'
    elif outcome == "crash" and message.endswith("step consume"):
        yield 'print("no defect: the process lives")'
        return
    elif outcome in _BY_SUITE:
        return
    else:
        yield f"expected = {expected}"
        if outcome == "lifetime broken":
            yield "shape, dtype = a.shape, a.dtype"
            yield "del x, a"
            yield "gc.collect()"
            yield "others = [numpy.full(shape, k, dtype) for k in range(99)]"
        yield f"actual = {read}"
        if OUTCOMES[outcome][0] not in HARM:
            yield 'print("passed:", expected, "arrived:", actual)'
            return
        yield "is_defect = actual != expected"
        yield 'print("defect:" if is_defect else "right:", actual, "instead of", expected)'
    yield "raise SystemExit(is_defect)"


def _array(plan: Plan, is_aligned: bool = False) -> list[str]:
    """Lines that make `a`, an array as a plan has it, with other values; none for types that NumPy
    does not have.
    """
    is_known = plan.dtype_info.kind in "biufcMm" or plan.dtype in _TEXTS
    if not is_known or plan.dtype_info.typestr is None:
        return []
    count = math.prod(plan.shape)
    text = f"numpy.arange(1, {count + 1})"
    forms = {"f": f"({text} / 7)", "c": f"({text} / 7 * (1 + 2j))", "b": f"({text} % 2)"}
    dtype = repr(_TEXTS.get(plan.dtype, plan.dtype))
    dtype = f"numpy.dtype({dtype}).newbyteorder()" if plan.byteorder == "swapped" else dtype
    text = f"{forms.get(plan.dtype_info.kind, text)}.astype({dtype})"
    lines = []
    if is_aligned:
        size = count * plan.itemsize
        lines = [f"v = {text}", f"m = numpy.empty({size + 64}, 'uint8')"]
        lines += [f"m = m[-m.ctypes.data % 64 :][:{size}].view(v.dtype)", "m[:] = v"]
        text = "m"
    order = [*(plan.layout or range(len(plan.shape)))]  # the place of each axis in memory
    shape = tuple(plan.shape[order.index(place)] for place in range(len(order)))
    text += f".reshape({shape})"
    text += f".transpose({tuple(order)})" if order != sorted(order) else ""
    for number, view in enumerate(plan.views, 1):
        text = _viewed(text, ViewMap.of(plan.shape, plan.views[:number]).shape, *view)
    return [*lines, f"a = {text}"]


def _viewed(text: str, shape: tuple[int, ...], name: str, axis: Any, *bounds: int | None) -> str:
    if name == "transpose":
        return f"{text}.transpose({axis})"
    if name == "broadcast":
        return f"numpy.broadcast_to({text}, {shape})"
    index = {"reverse": "::-1", "empty": "0:0", "newaxis": "None"}.get(name, "")
    index = index or ":".join("" if bound is None else str(bound) for bound in bounds)
    return f"{text}[{', '.join([':'] * axis + [index])}]"
