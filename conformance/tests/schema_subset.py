"""A validator for the part of JSON Schema that `plan.schema.json` and `report.schema.json` use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


def faults(value: Any, schema: dict[str, Any], place: str = "$") -> Iterator[str]:
    """What in `value` breaks the schema; raises KeyError for a keyword it does not know."""
    wrong_type = list(_type(value, schema["type"], schema, place)) if "type" in schema else []
    if wrong_type:
        yield from wrong_type
        return
    for keyword, argument in schema.items():
        yield from _KEYWORDS[keyword](value, argument, schema, place)


def inlined(schema: Any, root: dict[str, Any] | None = None) -> Any:
    """The schema with each reference to one of its `$defs` replaced by what it means."""
    root = schema if root is None else root
    if isinstance(schema, list):
        return [inlined(item, root) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        (name,) = re.fullmatch(r"#/\$defs/(\w+)", schema["$ref"]).groups()
        return inlined(root["$defs"][name], root)
    return {key: inlined(item, root) for key, item in schema.items() if key != "$defs"}


def _type(value, kinds, _schema, place):
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not any(
        isinstance(value, _TYPES[k]) and (k == "boolean") == (type(value) is bool) for k in kinds
    ):
        yield f"{place}: {value!r} is no {' or '.join(kinds)}"


def _properties(value, properties, schema, place):
    for key, item in value.items():
        if key in properties:
            yield from faults(item, properties[key], f"{place}.{key}")
        elif schema.get("additionalProperties") is False:
            yield f"{place}: unknown key {key}"


def _additional(value, schema_of_item, schema, place):
    if isinstance(schema_of_item, dict):
        for key in value.keys() - schema.get("properties", {}).keys():
            yield from faults(value[key], schema_of_item, f"{place}.{key}")


def _names(value, schema_of_name, _schema, place):
    for key in value:
        yield from faults(key, schema_of_name, f"{place} key")


def _required(value, keys, _schema, place):
    for key in keys:
        if key not in value:
            yield f"{place}: the key {key} is missing"


def _items(value, schema_of_item, _schema, place):
    for position, item in enumerate(value or ()):
        yield from faults(item, schema_of_item, f"{place}[{position}]")


def _prefix_items(value, schemas, _schema, place):
    for position, (item, schema) in enumerate(zip(value, schemas)):
        yield from faults(item, schema, f"{place}[{position}]")


def _one_of(value, schemas, _schema, place):
    matching = [schema for schema in schemas if not list(faults(value, schema, place))]
    if len(matching) != 1:
        yield f"{place}: {value!r} matches {len(matching)} of the {len(schemas)} alternatives"


def _bound(holds):
    def check(value, bound, _schema, place):
        if value is not None and not holds(value, bound):
            yield f"{place}: {value!r} against {bound!r}"

    return check


def _ignored(*_):
    return ()


_KEYWORDS = {
    "properties": _properties,
    "items": _items,
    "required": _required,
    "propertyNames": _names,
    "additionalProperties": _additional,
    "prefixItems": _prefix_items,
    "oneOf": _one_of,
    "enum": _bound(lambda value, options: value in options),
    "const": _bound(lambda value, constant: value == constant),
    "minimum": _bound(lambda value, bound: value >= bound),
    "maximum": _bound(lambda value, bound: value <= bound),
    "minItems": _bound(lambda value, bound: len(value) >= bound),
    "maxItems": _bound(lambda value, bound: len(value) <= bound),
    "pattern": _bound(lambda value, pattern: re.search(pattern, value) is not None),
    **dict.fromkeys(
        ("type", "$schema", "$id", "title", "description", "default"),
        _ignored,
    ),
}
