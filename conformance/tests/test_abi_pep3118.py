"""Format strings: sizes against the C compiler's (through `struct`) and against ctypes, kinds, and
bad input.
"""

from __future__ import annotations

import array
import ctypes
import struct
import sys

import pytest

from gridbuf_conformance.interfaces.buffer_protocol.pep3118 import BadFormat, parse
from hypothesis import given
from hypothesis import strategies as st

NATIVE = "<" if sys.byteorder == "little" else ">"
LONG_DOUBLE = ctypes.sizeof(ctypes.c_longdouble)


@given(
    prefix=st.sampled_from(["", "@", "=", "<", ">", "!"]),
    letters=st.text(alphabet="xcbB?hHiIlLqQefd", min_size=1, max_size=8),
)
def test_sizes_are_those_of_struct(prefix: str, letters: str) -> None:
    assert parse(prefix + letters).size_bytes == struct.calcsize(prefix + letters)


@given(letters=st.text(alphabet="bBhHiIlLqQfdnN", min_size=1, max_size=8))
def test_unaligned_native_sizes_add_up(letters: str) -> None:
    assert parse("^" + letters).size_bytes == sum(struct.calcsize(letter) for letter in letters)


@given(letters=st.text(alphabet="bhiqfd", min_size=1, max_size=6))
def test_padded_size_is_the_compilers(letters: str) -> None:
    kinds = dict(zip("bhiqfd", (ctypes.c_int8, ctypes.c_int16, ctypes.c_int32, ctypes.c_int64)))
    kinds |= {"f": ctypes.c_float, "d": ctypes.c_double}
    fields = [(f"f{n}", kinds[letter]) for n, letter in enumerate(letters)]
    record = type("Record", (ctypes.Structure,), {"_fields_": fields})
    assert parse(letters).padded_bytes == ctypes.sizeof(record)
    assert parse("T{" + letters + "}").size_bytes == ctypes.sizeof(record)
    assert parse("<" + letters).aligned_bytes == ctypes.sizeof(record)


@pytest.mark.parametrize(
    ("text", "kind", "order", "size"),
    [
        ("d", "float", NATIVE, 8),
        (">d", "float", ">", 8),
        ("!H", "uint", ">", 2),
        ("=q", "int", NATIVE, 8),
        ("?", "bool", "|", 1),
        ("b", "int", "|", 1),
        ("Zf", "complex", NATIVE, 8),
        (">Zd", "complex", ">", 16),
        ("F", "complex", NATIVE, 8),
        ("<D", "complex", "<", 16),
        ("g", "float", NATIVE, LONG_DOUBLE),
        ("Zg", "complex", NATIVE, 2 * LONG_DOUBLE),
        ("e", "float", NATIVE, 2),
        ("5s", "bytes", "|", 5),
        ("c", "bytes", "|", 1),
        ("3w", "text", NATIVE, 12),
        ("2u", "text", NATIVE, 4),
        ("O", "object", "|", struct.calcsize("P")),
        ("&d", "pointer", "|", struct.calcsize("P")),
        ("X{}", "pointer", "|", struct.calcsize("P")),
        ("2d", "struct", "|", 16),
        ("(2,3)h", "struct", "|", 12),
        ("(2,3)<h", "struct", "|", 12),
        ("T{<b:a:<d:b:(2)<h:c:}", "struct", "|", 13),
        ("dd", "struct", "|", 16),
        ("T{b:a:=d:b:(2)h:c:}", "struct", "|", 13),
        ("T{<b:a:7x<d:b:}", "struct", "|", 16),
        ("T{i:x:T{hh}:y:}:outer:", "struct", "|", 8),
        ("T{3t:a:29t:b:}", "struct", "|", 4),
        ("T{3t:a:2t:b:h:c:}", "struct", "|", 4),
        ("9t", "struct", "|", 2),
        (" d ", "float", NATIVE, 8),
        ("i:name:", "int", NATIVE, 4),
    ],
)
def test_kinds_orders_and_sizes(text: str, kind: str, order: str, size: int) -> None:
    fmt = parse(text)
    assert (fmt.kind, fmt.order, fmt.size_bytes) == (kind, order, size)


def test_padding_left_out_is_seen() -> None:
    fmt = parse("T{<b:a:<d:b:}")
    assert (fmt.size_bytes, fmt.aligned_bytes) == (9, 16)


@pytest.mark.parametrize("code", [code for code in array.typecodes if code not in "uw"])
def test_formats_of_the_array_module(code: str) -> None:
    view = memoryview(array.array(code, [0]))
    assert parse(view.format).size_bytes == view.itemsize


@pytest.mark.parametrize(
    "kind", [ctypes.c_int, ctypes.c_long, ctypes.c_double, ctypes.c_bool, ctypes.c_longdouble]
)
def test_formats_of_ctypes(kind: type) -> None:
    assert parse(memoryview(kind()).format).size_bytes == ctypes.sizeof(kind)


@pytest.mark.parametrize(
    ("letter", "platform"), [("l", True), ("i", True), ("B", False), ("<l", False)]
)
def test_letters_that_the_platform_sizes(letter: str, platform: bool) -> None:
    assert (parse(letter).native_letter is not None) == platform


@pytest.mark.parametrize(
    "text",
    [
        "y",
        "Zi",
        "Z",
        "T{d",
        "Td}",
        "(2,d",
        "(,)d",
        "T{" * 40 + "}" * 40,
        "<n",
        "3",
        ":n:d",
        "X{d",
        "&" * 5000,
        "9" * 5000 + "d",
    ],
)
def test_bad_formats_are_refused(text: str) -> None:
    with pytest.raises(BadFormat):
        parse(text)


@given(st.text(alphabet="@=<>!^ 0123(),:{}TZXxcbB?hilqefdgO&wus", max_size=20))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        fmt = parse(text)
    except BadFormat:
        return
    assert fmt.size_bytes >= 0
    assert fmt.padded_bytes >= fmt.size_bytes
