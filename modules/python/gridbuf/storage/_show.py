"""How a storage looks: `repr` for terminals, `_repr_html_` for notebooks.

Both say what a storage is (shape, dims, halo, layout, padding, alignment), the place of its memory and the
current side. Showing a storage changes nothing and waits for nothing: values are shown only where the host can read them
without a copy from a device. So a debugger can show a storage between any two steps.

The HTML is one piece with an SVG inside (`_picture`), without scripts, styles or other files.
"""

from __future__ import annotations

import operator
from html import escape
from typing import Any

import numpy as np

from .. import _core
from ._picture import picture
from ._values import differ

_MAX_VALUES = 100  # Of more, the first and last ones per dimension are shown; of many dimensions, the first plane.


def text(storage: Any) -> str:
    """`repr`: the parameters in one line, then the values if the host has them."""
    properties = ", ".join(f"{name}={value}" for name, value in _properties(storage).items())
    line = f"gridbuf.storage.{type(storage).__name__}({properties})"
    values = _values(storage)
    return line if values is None else f"{line}\n{values}"


def _properties(storage: Any) -> dict[str, str]:
    """The properties by name, in Python's notation."""
    properties = {
        "shape": storage.shape,
        "dtype": storage.dtype if storage.dtype.names is None else repr(storage.dtype),
        "dims": storage.dims,
        "halo": storage.halo,
        "layout": storage.layout,
    }
    properties |= _memory(storage, "")
    properties["aligned_index"] = storage.aligned_index
    if any(index is not None for index in storage.lower):
        properties["lower"] = storage.lower
    properties["device"] = _device(storage)
    if storage._has_two_layouts:
        properties["device_layout"] = storage.device_layout
        properties |= _memory(storage, "device_")
    if storage.sync_state is not None:
        properties["sync_state"] = _state_name(storage)
    if storage._readonly:
        properties["readonly"] = True
    return {name: str(value) for name, value in properties.items()}


def _memory(storage: Any, side: str) -> dict[str, Any]:
    """Elements of padding per dimension, or strides for a view, which they describe better; and the alignment.

    `side` is "" or "device_".
    """
    alignment, strides = (getattr(storage, side + name) for name in ("alignment_size", "strides"))
    plan = _core.plan(
        storage.shape,
        storage.dtype,
        layout=getattr(storage, side + "layout"),
        alignment_size=alignment,
        aligned_index=storage.aligned_index,
        dims=storage.dims,
    )
    found: dict[str, Any] = {}
    if differ(storage, plan.strides, strides):
        found[side + "strides"] = strides
    else:
        found[side + "padding"] = tuple(map(operator.sub, plan.padded_shape, storage.shape))
    return {**found, side + "alignment_size": alignment}


def _device(storage: Any) -> str:
    if storage.device is None:
        return "None"
    return f"'{storage.device}' (emulated)" if storage._is_emulated else f"'{storage.device}'"


def _state_name(storage: Any) -> str:
    """The state's own name; of both flags, what they mean."""
    state = storage.sync_state.state
    return state.name if int(state) < 3 else "SYNC_HOST_DIRTY|SYNC_DEVICE_DIRTY"


def _values(storage: Any) -> str | None:
    """The values as NumPy writes them; None where reading them would wait for a device."""
    managed = storage.managed
    if storage.device is not None and (
        managed != "gt4py" or "host" not in storage._current_sides()
    ):
        return None
    values, heading = storage._read_array("host"), ""
    if (
        values.size > _MAX_VALUES
        and any(map(any, storage.halo))
        and 0 not in storage.domain_view.shape
    ):
        # The first and last values of each dimension are halo.
        values, heading = storage.domain_view._read_array("host"), "domain_view:\n"
    if values.ndim > 3 and values.size > _MAX_VALUES:
        first = (0,) * (values.ndim - 2)
        place = f"{[*first, ...]}:\n".replace("Ellipsis", "...")
        values, heading = values[first], heading.replace(":\n", "") + place
    return heading + np.array2string(
        values, threshold=_MAX_VALUES, edgeitems=3 if values.ndim < 3 else 2, separator=", "
    )


def html(storage: Any) -> str:
    """`_repr_html_`: a picture of the field and of its memory, and the parameters as a table."""
    rows = "".join(
        f'<tr><td style="text-align:left;opacity:.7;padding:1px 12px 1px 0">{escape(name)}</td>'
        f'<td style="text-align:left;padding:1px 0"><code>{escape(value)}</code></td></tr>'
        for name, value in _properties(storage).items()
    )
    values = _values(storage)
    shown = (
        ""
        if values is None
        else f"<details><summary>values</summary><pre>{escape(values)}</pre></details>"
    )
    return (
        '<div style="font-family:sans-serif;font-size:13px;line-height:1.4;color:inherit">'
        f"<strong>{escape(type(storage).__name__)}</strong>"
        f"<div>{picture(storage)}</div>"
        f'<table style="border-collapse:collapse;font-size:12px">{rows}</table>{shown}</div>'
    )
