"""One export, what the consumer made of it, and what it should have: what consumer checks look at.

A result is right if one of the interfaces that it has shows it right: whether the result itself
is a good producer is another question, and another run. It is compared with the plan, as XA-04
compares element types.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from itertools import product
from math import prod

from ..abi import elements
from ..abi.descriptors import Descriptor, first_difference, sample_indices
from ..interfaces.descriptors import descriptors_of
from ..abi.elements import Element
from ..info import ArrayInfo, ConsumptionInfo, ErrorInfo, ExportInfo
from ..plan import Plan
from . import Export, expected_values

_UNCLEAN = {
    "SystemError": "an exception was lost on the way",
    "AssertionError": "an assertion is not an answer to a caller",
    "MemoryError": "a size was believed that is none",
}
_NO_RESULTS = ("NoneType", "NotImplementedType")
_DESCRIBED_NDIM = 200
_WRAPPED = ErrorInfo("no error, and an array of objects that holds the exporter")
_ORDER = ("AI", "AS", "PB", "DL", "CAI")


class Consumption:
    """The info on one call of a consumer (`measure.consumption`), and what follows from them."""

    def __init__(self, info: ConsumptionInfo, export: Export) -> None:
        self.info = info
        self.export = export
        self.siblings: list[Consumption] = []
        """The calls with the same export, this one among them, each with one keyword or none."""

    @cached_property
    def calls(self) -> list[Consumption]:
        """The call of each thread, for an export that several threads import; else none."""
        infos = [
            replace(self.info, error=call.error, result=call.result, looks={}, calls=[])
            for call in self.info.calls
        ]
        return [Consumption(info, self.export) for info in infos]

    # -- refused -------------------------------------------------------------------------------

    @property
    def accepted(self) -> bool:
        return self.info.error is None and not self.is_wrapped

    @property
    def is_wrapped(self) -> bool:
        """Whether the exporter itself came back as the one element of an array of objects: what
        NumPy makes of everything that it does not know. That is a refusal without an error."""
        arrays = self.arrays.values()
        return bool(arrays) and all(
            array.element is not None
            and array.element.kind == "object"
            and array.element_count == 1
            for array in arrays
        )

    @property
    def error(self) -> ErrorInfo:
        """The exception of the consumer; raises LookupError where the consumer took the export."""
        error = self.info.error or (_WRAPPED if self.is_wrapped else None)
        if error is None:
            raise LookupError("nothing was raised")
        return error

    @property
    def refusal(self) -> str:
        """How the consumer refused, for a message."""
        text = self.error.text.strip().splitlines()
        return f"{self.error.type}: {text[0][:120]}" if text else self.error.type

    @property
    def unclean(self) -> str:
        """Why a refusal is not a clean one; empty for a clean one."""
        if not self.error.ordinary:
            return "it is not an Exception"
        return _UNCLEAN.get(self.error.type, "")

    # -- taken ---------------------------------------------------------------------------------

    @property
    def result(self) -> ArrayInfo:
        return self.info.result or ArrayInfo()

    @cached_property
    def arrays(self) -> dict[str, Descriptor]:
        """What each interface of the result says, the most telling first."""
        found = descriptors_of(self.result)
        return {name: found[name] for name in _ORDER if name in found}

    @staticmethod
    def _walk_of(plan: Plan) -> str:
        """The bytes of the sampled elements, as a plan has them, in hexadecimal."""
        shape = plan.view_map.shape
        return "".join(plan.viewed_element_bytes(i).hex() for i in sample_indices(shape))

    @cached_property
    def mistake(self) -> tuple[str, str] | None:
        """(expected, actual) of the first thing in which the result differs; None if it is right.

        None as well where the result has nothing that could be looked into.
        """
        if self.result.type in _NO_RESULTS:
            return "an array", self.result.type
        mistakes = [self._mistake_of(name, array) for name, array in self.arrays.items()]
        if mistakes and None not in mistakes:
            return mistakes[0]
        return self._mistake_of_looks()

    def _mistake_of_looks(self) -> tuple[str, str] | None:
        """The first look at the result, with its library's own eyes, that shows another array.

        A library may choose another type for a copy (`_is_converted`). Then its numbers are not
        compared.
        """
        if any(map(self._is_converted, self.arrays.values())):
            return None
        if not self.arrays and "DP" not in self.export.interface.groups:
            return None
        looks = (
            expected_values.mistake(self.export, name, info)
            for name, info in self.info.looks.items()
        )
        return next(filter(None, looks), None)

    def _mistake_of(self, name: str, array: Descriptor) -> tuple[str, str] | None:
        export = self.export
        if self.info.gives_bytes:
            return self._mistake_of_bytes(name, array)
        shape = export.variant.described(export.view_map.shape)
        if len(shape) > _DESCRIBED_NDIM:
            return None  # of so long a shape no info is kept
        if array.shape != shape:
            return f"shape {list(shape)}", f"shape {list(array.shape)}"
        if export.variant.is_retyped and array.itemsize != export.itemsize:
            return f"elements of {export.itemsize} bytes", f"elements of {array.itemsize} bytes"
        if self._is_converted(array):
            return None
        asked = elements.of_plan(export.dtype_info, export.byteorder)
        turned = _is_turned(asked, array.element)
        if not (turned or export.variant.is_retyped or elements.agree(asked, array.element)):
            return f"elements: {asked}", f"elements: {array.element}"
        expected = self._walk_of(export.plan.replaced(byteorder="native") if turned else export)
        walked = self.result.walk.get(name)
        if walked is None and self._leads_nowhere(array):
            return "elements that can be read", "an address where no memory is"
        if export.variant.is_retyped and not self._lies_in_block(array):
            return None  # a copy of a record need not copy its padding
        if walked is not None and walked != expected:
            return first_difference(expected, walked, array)
        return None

    def _leads_nowhere(self, array: Descriptor) -> bool:
        """Whether the elements are said to be in host memory that the exporter has not closed."""
        is_host = array.is_host and not (array.is_empty or array.is_indirect)
        return is_host and not self._lies_in_block(array)

    def _is_converted(self, array: Descriptor) -> bool:
        """Whether this is a copy of numbers in a type of the consumer's own choice.

        DLPack's import has to keep the type (DP-30). For the other interfaces no text asks it of a
        copy, and a consumer without numbers of 64 bits may choose shorter ones.
        """
        asked = elements.of_plan(self.export.dtype_info, self.export.byteorder)
        given = array.element
        if "DP" in self.export.interface.groups or given is None or self._lies_in_block(array):
            return False
        kinds = {"int", "uint", "float", "complex", "bool"}
        return {asked.kind, given.kind} <= kinds and (
            (asked.kind, asked.itemsize) != (given.kind, given.itemsize)
        )

    def _mistake_of_bytes(self, name: str, array: Descriptor) -> tuple[str, str] | None:
        """The same for a consumer that turns everything into one dimension: contents alone count.

        Row-major, or in the order of memory: a consumer that asks for contiguous memory of any
        order is given just that.
        """
        shape = self.export.view_map.shape
        count = prod(shape) * self.export.itemsize
        if array.nbytes != count:
            return f"{count} bytes", f"{array.nbytes} bytes"
        walked = self.result.walk.get(name)
        numbers = [index[0] if index else 0 for index in sample_indices(array.shape)]
        given = []
        for orders in (shape, shape[::-1]):
            indices = product(*map(range, orders))
            turned = (index if orders is shape else index[::-1] for index in indices)
            content = b"".join(map(self.export.viewed_element_bytes, turned))
            size = array.itemsize
            given.append("".join(content[n * size : (n + 1) * size].hex() for n in numbers))
        if walked is None or array.ndim > 1 or walked in given:
            return None
        return first_difference(given[0], walked, array)

    @property
    def can_be_read(self) -> bool:
        """Whether the result's elements were seen through at least one interface."""
        return any(
            self.result.walk.get(name) is not None
            for name, array in self.arrays.items()
            if not self._is_converted(array)
        )

    @cached_property
    def aliases(self) -> bool:
        """Whether the result is in the exported memory."""
        return any(self._lies_in_block(a) for a in self.arrays.values() if not a.is_empty)

    @property
    def is_readonly(self) -> bool | None:
        """Whether every interface of the result says read-only; None if no interface can say."""
        claims = [array.readonly for array in self.arrays.values() if array.readonly is not None]
        return all(claims) if claims else None

    def _lies_in_block(self, array: Descriptor) -> bool:
        low, high = self.info.block
        return bool(low <= array.address < high)

    # -- life ----------------------------------------------------------------------------------

    @property
    def returned(self) -> ExportInfo:
        """What the exporter had seen when the consumer returned."""
        return self.info.returned

    @property
    def kept(self) -> ExportInfo:
        """The same when the suite had dropped the exporter, and the result lived."""
        return self.info.kept

    @property
    def after(self) -> ExportInfo:
        """The same when the result was gone, too."""
        return self.info.after


def _is_turned(asked: Element, given: Element | None) -> bool:
    """Whether numbers of the other byte order were turned into native ones: a copy, and right."""
    native = replace(asked, order=elements.NATIVE_ORDER)
    return asked.is_swapped and given == native
