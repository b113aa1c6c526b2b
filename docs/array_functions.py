"""Writes docs/reference/array-functions.md from the table that storages answer by: python docs/array_functions.py"""

from pathlib import Path

import numpy as np
from gridbuf.storage import Storage, _table

PAGE = Path(__file__).parent / "reference/array-functions.md"

INTRODUCTION = """# NumPy's functions on storages

<!-- Written by docs/array_functions.py. -->

You can call these functions of NumPy on storages. NumPy computes on the host, CuPy on a device, on the side that is current. The values and
dtypes are NumPy's. `axis` takes numbers or names. 
Storages have these as methods, as in `storage.sum(axis="K")`: {methods}.
`sort` and `partition` write in place. `reshape` and `ravel` give read-only views or new memory: assign through `storage.flat` or
`storage.to_numpy()`. Attributes of NumPy's arrays that storages do not have are an AttributeError that names what to type.

The halo counts as elements: `storage.mean()` is the mean of domain and halo, and `storage.domain_view.mean()` is that of the domain.

Dimensions are paired **by name** where the table says so: `numpy.where(mask, field, column)` takes an `("I", "J")`, an `("I", "J", "K")` and
a `("K",)` storage. The halo follows the names. A dimension whose extent changes has no halo in the result.

The functions of the [array API 2024.12](https://data-apis.org/array-api/2024.12/) are all in the table. The names in it are NumPy's.
`storage.__array_namespace__()` gives them, and functions such as `zeros` and `asarray` that make storages, for libraries such as
array-api-compat. It differs from the array API where names matter: arrays with different names are paired by name, an extent of 1 broadcasts
only if `None` or `keepdims` has made it, and `device` is None on the host. xarray refuses to index arrays that have this attribute at
points, so storages do not have it in a process that has imported xarray.

"""

REFUSED = """
## Functions that are refused

They are a TypeError that names the replacement. Every function of NumPy that is not on this page is refused, too, and its replacement is the
function of `storage.to_numpy()` or `storage.to_cupy()`.

| function | use |
|---|---|
"""


def names_of(rule: str) -> list[str]:
    names = [name for name, row in _table.ROWS.items() if row.rule == rule]
    if rule == "elementwise":
        ufuncs = {name for name, value in vars(np).items() if isinstance(value, np.ufunc)}
        names += [name for name in ufuncs if _table.row_of(name) == _table.Row("elementwise")]
    return sorted(names)


def page() -> str:
    lines = ["| what it returns | functions |", "|---|---|"]
    for rule, returns in _table.RULES.items():
        functions = ", ".join(f"`{name}`" for name in names_of(rule))
        lines.append(f"| {returns} | {functions} |")
    refused = [f"| `{name}` | `{code}` |" for name, code in _table.REFUSED.items()]
    methods = ", ".join(
        f"`{name}`"
        for name in sorted({*_table.ROWS, "conj"})
        if callable(getattr(Storage, name, None))
    )
    return (
        INTRODUCTION.replace("{methods}", methods)
        + "\n".join(lines)
        + "\n"
        + REFUSED
        + "\n".join(refused)
        + "\n"
    )


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
