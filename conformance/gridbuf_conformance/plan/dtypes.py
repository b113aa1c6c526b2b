"""The element types that a plan can name, and the bytes that a plan's elements hold.

This is a closed list, in the order in which Hypothesis shrinks: `float64` is the simplest. A
producer that cannot make one of them answers `Unsupported`.

The content of an element follows from the plan's `fill` seed, the element's row-major index and its
type. The formula uses nothing but integers, so that a producer in any language can follow it:

1. `x[0] = 1`, `x[n+1] = 16807 * x[n] mod (2^31 - 1)`, and `table[n] = 1 + x[n] mod 123` for n <
   4093;
2. byte k of element i is `table[(769 * seed + i * itemsize + k) mod 4093]`;
3. the bytes are then made a valid value of the type (`DType.valid`): a bool is the lowest bit of
   its byte, a character keeps its lowest byte, a long double gets its integer bit and zeroed
   padding, the padding of a record is zeroed, and a type of less than a byte keeps its lowest bits:
   in a plan's content each such element has its own byte, in memory they are packed (`packed`);
4. for the byte order "swapped", the bytes of each number in the element are reversed.

No byte is above 0x7b before step 3: every floating-point pattern is finite and none is a NaN,
which a copy could legally change. The period is prime, so that rows of any usual length do not
repeat each other.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from functools import lru_cache

_PERIOD = 4093
_SEED_STEP = 769
_LONG_DOUBLE_BYTES = ctypes.sizeof(ctypes.c_longdouble)


@dataclass(frozen=True)
class DType:
    """One element type: what each interface calls it, in native byte order.

    `kind` is the letter of the array interface's typestr ("f" also for bfloat16 and the 8-bit
    floats, which do not have a typestr: `typestr` is None). `format` is the buffer
    protocol's format, None where it cannot describe the type. `dlpack` is (type code, bits), None
    where DLPack must refuse. `numbers` lists (offset, width) in bytes of every number inside the
    element: what byte swapping reverses.
    """

    name: str
    kind: str
    itemsize: int
    typestr: str | None
    format: str | None
    dlpack: tuple[int, int] | None
    numbers: tuple[tuple[int, int], ...]
    fields: tuple[tuple[str, str, int, tuple[int, ...]], ...] = ()
    """For a record: (name, type name, offset in bytes, shape of the sub-array)."""
    padding: tuple[tuple[int, int], ...] = ()
    """For a record: (offset, width) in bytes of padding, whose content is not judged."""
    packed_bits: int | None = None
    """For a type of less than a byte: how many bits of memory an element takes."""

    @property
    def is_common(self) -> bool:
        """Whether plans ask for the type without a declaration."""
        return self.packed_bits is None and self.name not in ("padded", "str1")

    @property
    def has_byteorder(self) -> bool:
        """Whether swapping the byte order changes anything."""
        return any(width > 1 for _, width in self.numbers)

    def valid(self, raw: bytearray) -> None:
        """Turns raw bytes of whole elements into valid values, in place (step 3)."""
        for offset, width in self.padding:
            for k in range(offset, offset + width):
                raw[k :: self.itemsize] = bytes(len(raw) // self.itemsize)
        if self.fields:
            return
        if self.packed_bits is not None:
            below = 1 << self.packed_bits
            raw[:] = raw.translate(bytes(byte % below for byte in range(256)))
        elif self.kind == "b":
            raw[:] = raw.translate(_LOWEST_BIT)
        elif self.kind == "U":
            keep = 0 if sys.byteorder == "little" else 3
            for k in range(4):
                if k != keep:
                    raw[k::4] = bytes(len(raw) // 4)
        elif self.name in ("longdouble", "clongdouble") and _LONG_DOUBLE_BYTES > 8:
            raw[7::_LONG_DOUBLE_BYTES] = raw[7::_LONG_DOUBLE_BYTES].translate(_HIGHEST_BIT)
            for k in range(10, _LONG_DOUBLE_BYTES):
                raw[k::_LONG_DOUBLE_BYTES] = bytes(len(raw) // _LONG_DOUBLE_BYTES)

    def swapped(self, native: bytes) -> bytes:
        """The bytes of whole elements with each number's bytes reversed (step 4)."""
        out = bytearray(native)
        for offset, width in self.numbers:
            for k in range(width):
                source = offset + width - 1 - k
                out[offset + k :: self.itemsize] = native[source :: self.itemsize]
        return bytes(out)


_LOWEST_BIT = bytes(byte & 1 for byte in range(256))
_HIGHEST_BIT = bytes(byte | 0x80 for byte in range(256))


@lru_cache(maxsize=1)
def _table() -> bytes:
    values, x = bytearray(_PERIOD), 1
    for n in range(_PERIOD):
        values[n] = 1 + x % 123
        x = x * 16807 % (2**31 - 1)
    return bytes(values)


def fill_bytes(seed: int, flat_index: int, itemsize: int, count: int = 1) -> bytearray:
    """Raw bytes of `count` elements from row-major index `flat_index` on (steps 1 and 2)."""
    table = _table()
    start = (_SEED_STEP * seed + flat_index * itemsize) % _PERIOD
    wanted = count * itemsize
    repeats = (start + wanted) // _PERIOD + 1
    return bytearray((table * repeats)[start : start + wanted])


def packed(values: bytes, bits: int) -> bytes:
    """Elements of less than a byte in memory, the lowest bits of `values` one after the other.

    Little-endian bit order: element 0 takes the lowest bits of byte 0 (DL-25).
    """
    stream = 0
    for position, value in enumerate(values):
        stream |= (value % (1 << bits)) << (position * bits)
    return stream.to_bytes((len(values) * bits + 7) // 8, "little")


def _plain(
    name: str,
    kind: str,
    itemsize: int,
    typestr: str | None,
    fmt: str | None,
    dlpack: tuple[int, int] | None,
    numbers: tuple[tuple[int, int], ...] | None = None,
) -> DType:
    return DType(name, kind, itemsize, typestr, fmt, dlpack, numbers or ((0, itemsize),))


def _order(typestr: str) -> str:
    return ("<" if sys.byteorder == "little" else ">") + typestr


def _complex(name: str, part_bytes: int, fmt: str, dlpack: tuple[int, int] | None) -> DType:
    numbers = ((0, part_bytes), (part_bytes, part_bytes))
    return _plain(name, "c", 2 * part_bytes, _order(f"c{2 * part_bytes}"), fmt, dlpack, numbers)


def _below_a_byte(name: str, kind: str, code: int, bits: int) -> DType:
    return DType(name, kind, 1, None, None, (code, bits), ((0, 1),), packed_bits=bits)


def _structured() -> DType:
    """Packed record of 13 bytes: no power of two divides it, and it has a field that repeats."""
    fields = (("a", "int8", 0, ()), ("b", "float64", 1, ()), ("c", "int16", 9, (2,)))
    numbers = ((0, 1), (1, 8), (9, 2), (11, 2))
    return DType("struct", "V", 13, "|V13", "T{b:a:=d:b:(2)h:c:}", None, numbers, fields)


def _padded() -> DType:
    """Record of 32 bytes as a C compiler lays it out: padding inside and at its end, and a
    sub-array of two axes.
    """
    fields = (("a", "int8", 0, ()), ("b", "float64", 8, ()), ("c", "int16", 16, (2, 3)))
    numbers = ((0, 1), (8, 8), *((16 + 2 * k, 2) for k in range(6)))
    padding = ((1, 7), (28, 4))
    written = "T{b:a:7x=d:b:(2,3)h:c:4x}"
    return DType("padded", "V", 32, "|V32", written, None, numbers, fields, padding)


def _dtypes() -> tuple[DType, ...]:
    signed = {1: "b", 2: "h", 4: "i", 8: "q"}
    long_double = _LONG_DOUBLE_BYTES
    return (
        _plain("float64", "f", 8, _order("f8"), "d", (2, 64)),
        _plain("float32", "f", 4, _order("f4"), "f", (2, 32)),
        *(
            _plain(
                f"int{8 * n}", "i", n, "|i1" if n == 1 else _order(f"i{n}"), signed[n], (0, 8 * n)
            )
            for n in (8, 4, 2, 1)
        ),
        *(
            _plain(
                f"uint{8 * n}",
                "u",
                n,
                "|u1" if n == 1 else _order(f"u{n}"),
                signed[n].upper(),
                (1, 8 * n),
            )
            for n in (8, 4, 2, 1)
        ),
        _plain("bool", "b", 1, "|b1", "?", (6, 8)),
        _plain("float16", "f", 2, _order("f2"), "e", (2, 16)),
        _complex("complex64", 4, "Zf", (5, 64)),
        _complex("complex128", 8, "Zd", (5, 128)),
        _plain("longdouble", "f", long_double, _order(f"f{long_double}"), "g", None),
        _complex("clongdouble", long_double, "Zg", None),
        _plain("datetime64[ns]", "M", 8, _order("M8[ns]"), None, None),
        _plain("timedelta64[ns]", "m", 8, _order("m8[ns]"), None, None),
        _plain("bytes5", "S", 5, "|S5", "5s", None, ((0, 1),)),
        _plain("str3", "U", 12, _order("U3"), "3w", None, ((0, 4), (4, 4), (8, 4))),
        _structured(),
        _plain("bfloat16", "f", 2, None, None, (4, 16)),
        _plain("float8_e4m3fn", "f", 1, None, None, (10, 8)),
        _plain("float8_e5m2", "f", 1, None, None, (12, 8)),
        _below_a_byte("float4_e2m1fn", "f", 17, 4),
        _below_a_byte("float6_e2m3fn", "f", 15, 6),
        _below_a_byte("float6_e3m2fn", "f", 16, 6),
        _below_a_byte("int4", "i", 0, 4),
        _below_a_byte("uint4", "u", 1, 4),
        _padded(),
        _plain("str1", "U", 4, _order("U1"), "w", None),
    )


DTYPES: dict[str, DType] = {dtype.name: dtype for dtype in _dtypes()}
"""Every element type by its name, simplest first."""
