"""Random lives of storages against a model: a read returns the last write that gridbuf knows of.

The model is one array of values (`truth`), and for each side the set of points that it alone knows (`dirty`), in base
coordinates. Hypothesis draws views, reads, writes, exports that are held and dropped, marks, synchronisations, copies,
streams, delays and failures of the emulated device, whose streams run as late as the rules allow.

What the model demands:

* a read through gridbuf on any side, by any way, shows `truth`;
* so does one through an export, right after an access through gridbuf on its side;
* a mark over points that the other side alone knows is a `SyncConflictError`, and changes nothing;
* a copy that fails changes nothing, and the next access tries again;
* where a side is known to be dirty, `sync_state` says so.

A model that cannot fail proves nothing: `test_the_model_notices` breaks the rules on purpose, one at a time.
"""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar

import gridbuf
import gridbuf.storage
import numpy as np
import pytest
from foreign import KINDS, Foreign, OnHost, device_capsule, emulated, entry, of_interface, through
from gridbuf import testing
from gridbuf.storage import SyncState
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

HOST, DEVICE = "host", "device"
ENTRY = {HOST: None, DEVICE: "gpu"}
OTHER = {HOST: DEVICE, DEVICE: HOST}
VALUES = st.integers(0, 255)

LONG = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)


@dataclass(eq=False)
class View:
    """A storage, and the place of each element in the base."""

    storage: Any
    index: np.ndarray


@dataclass(eq=False)
class Export:
    """Something held that can be written without gridbuf: a buffer, an ndarray, a capsule."""

    side: str
    view: View
    array: np.ndarray | Foreign
    owner: Any

    def read(self) -> np.ndarray:
        return self.array.read() if isinstance(self.array, Foreign) else self.array.copy()

    def write(self, value: int) -> None:
        if isinstance(self.array, Foreign):
            self.array.write(value)
        else:
            self.array[...] = value


ALIGNMENTS = st.sampled_from([1, 8, 24, 64])


@st.composite
def requests(draw: st.DrawFn, two_layouts: bool) -> dict[str, Any]:
    shape = tuple(draw(st.lists(st.integers(1, 5), max_size=4)))
    orders = st.permutations(range(len(shape)))
    request = {
        "shape": shape,
        "dtype": draw(st.sampled_from(["u1", "u1", "f4", "f8"])),
        "layout": tuple(draw(orders)),
        "alignment_size": draw(ALIGNMENTS),
    }
    if two_layouts:
        request |= {
            "device_layout": tuple(draw(orders)),
            "device_alignment_size": draw(ALIGNMENTS),
        }
    return request


@st.composite
def slices(draw: st.DrawFn) -> slice:
    bound = st.one_of(st.none(), st.integers(-6, 6))
    step = draw(st.sampled_from([None, None, 1, 2, -1, -2, 3]))
    return slice(draw(bound), draw(bound), step)


KEYS = st.lists(st.one_of(slices(), st.integers(-2, 1), st.just(Ellipsis), st.none()), max_size=3)


class Model(RuleBasedStateMachine):
    """See the head of the file; `kind` is the type of storage."""

    kind: ClassVar[str] = "synced"
    two_layouts: ClassVar[bool] = False
    views = Bundle("views")

    def __init__(self) -> None:
        super().__init__()
        self._device = emulated()
        self._device.__enter__()
        self._streams = (1, 2, testing.create_stream())
        self.exports: list[Export] = []
        self.dirty: dict[str, set[int]] = {HOST: set(), DEVICE: set()}
        # What a side may think it knows alone: hulls, and the boxes of exports that ended.
        self.may_be_dirty = {HOST: False, DEVICE: False}
        self.sides = {"cpu": (HOST,), "gpu": (DEVICE,)}.get(self.kind, (HOST, DEVICE))

    @property
    def has_mirrors(self) -> bool:
        return self.kind == "synced"

    # ---- Making storages and views. ----

    @initialize(target=views, data=st.data(), value=VALUES)
    def allocate(self, data: st.DataObject, value: int) -> View:
        request = data.draw(requests(self.two_layouts))
        storage = gridbuf.storage.full(fill_value=value, **request, **KINDS[self.kind])
        self.may_be_dirty = dict.fromkeys(self.may_be_dirty, True)
        self.truth = np.full(request["shape"], value, request["dtype"])
        self.base = View(storage, np.arange(self.truth.size).reshape(self.truth.shape))
        return self.base

    @rule(target=views, view=views, key=KEYS)
    def slice(self, view: View, key: list[Any]) -> View:
        key = tuple(key)
        try:
            index = view.index[key]
        except IndexError:
            with pytest.raises(IndexError):
                view.storage[key]
            return view
        if not isinstance(index, np.ndarray):
            return view  # a full set of integers is a scalar, not a view
        return View(view.storage[key], index)

    @rule(target=views, view=views, data=st.data())
    def transpose(self, view: View, data: st.DataObject) -> View:
        axes = tuple(data.draw(st.permutations(range(view.index.ndim))))
        return View(view.storage.transpose(*axes), view.index.transpose(axes))

    # ---- What a side shows. ----

    def expected(self, view: View) -> np.ndarray:
        return self.truth.reshape(-1)[view.index]

    def shown(self, view: View, side: str) -> np.ndarray:
        """Reads without marking anything, as a stencil's input."""
        return through(view.storage, ENTRY[side], Foreign.read, writes=False)

    def hull(self, view: View) -> set[int]:
        """The points of the smallest box around a view's."""
        if not view.index.size:
            return set()
        if not self.truth.ndim:
            return {0}
        places = np.unravel_index(view.index, self.truth.shape)
        box = tuple(slice(axis.min(), axis.max() + 1) for axis in places)
        return set(self.base.index[box].ravel().tolist())

    def points(self, view: View) -> set[int]:
        return set(view.index.ravel().tolist())

    def is_current(self, side: str, points: set[int] | None) -> None:
        """Bookkeeping of an access to a side: these points (None: all) are known there now."""
        other = OTHER[side]
        self.dirty[other] -= self.dirty[other] if points is None else points
        if points is None:
            self.may_be_dirty[other] = False

    def was_written(self, side: str, view: View, values: Any, *, by_hull: bool = False) -> None:
        self.truth.reshape(-1)[view.index] = values
        written = self.hull(view) if by_hull else self.points(view)
        self.dirty[OTHER[side]] -= written
        self.dirty[side] |= written
        self.may_be_dirty[side] |= bool(written)

    def on_stream(self, number: int) -> Any:
        return nullcontext() if self.kind == "cpu" else gridbuf.stream(self._streams[number])

    # ---- Reading. ----

    @rule(view=views, stream=st.integers(0, 2), side=st.sampled_from([HOST, DEVICE]))
    def read(self, view: View, stream: int, side: str) -> None:
        if side not in self.sides:
            return
        with self.on_stream(stream):
            np.testing.assert_array_equal(self.shown(view, side), self.expected(view))
        self.is_current(side, None)  # `acquire` is for the whole base

    @rule(view=views, data=st.data())
    def read_element(self, view: View, data: st.DataObject) -> None:
        if HOST not in self.sides or not view.index.size:
            return
        place = tuple(data.draw(st.integers(0, n - 1)) for n in view.index.shape)
        found = view.storage[place]
        assert found == self.expected(view)[place]
        self.dirty[DEVICE] -= {int(view.index[place])}

    @rule(view=views, door=st.sampled_from(["asarray", "memoryview", "to_numpy", "dlpack"]))
    def read_export(self, view: View, door: str) -> None:
        """A short-lived export: at its end its box counts as written, because writes are not seen."""
        if HOST not in self.sides:
            return
        array, owner = host_export(view.storage, door)
        np.testing.assert_array_equal(array, self.expected(view))
        del array, owner
        self.dirty[DEVICE] -= self.hull(view)
        self.may_be_dirty[HOST] |= bool(view.index.size)

    @rule(view=views)
    def read_capsule(self, view: View) -> None:
        if DEVICE not in self.sides:
            return
        exported = device_capsule(view.storage)
        np.testing.assert_array_equal(exported.read(), self.expected(view))
        del exported
        self.dirty[HOST] -= self.hull(view)
        self.may_be_dirty[DEVICE] |= bool(view.index.size)

    # ---- Writing through gridbuf. ----

    @rule(view=views, value=VALUES)
    def assign(self, view: View, value: int) -> None:
        view.storage[...] = value
        side = HOST if HOST in self.sides else DEVICE
        self._assigned(side, view, value)

    @rule(view=views, key=KEYS, value=VALUES)
    def assign_part(self, view: View, key: list[Any], value: int) -> None:
        try:
            index = view.index[tuple(key)]
        except IndexError:
            return
        view.storage[tuple(key)] = value
        self._assigned(self.sides[0], View(None, np.asarray(index)), value)

    def _assigned(self, side: str, view: View, value: int) -> None:
        """gridbuf may choose the side where both are current: the model then knows neither for sure."""
        self.truth.reshape(-1)[view.index] = value
        if not self.has_mirrors:
            return
        hull = self.hull(view)
        for known in self.dirty.values():
            known -= hull
        self.may_be_dirty = dict.fromkeys(self.may_be_dirty, True)

    @rule(
        view=views,
        value=VALUES,
        side=st.sampled_from([HOST, DEVICE]),
        stream=st.integers(0, 2),
        late=st.booleans(),
    )
    def compute(self, view: View, value: int, side: str, stream: int, late: bool) -> None:
        """A stencil: acquire, write, touch. On the device its work may still be pending when it returns."""
        if side not in self.sides:
            return
        late = late and side == DEVICE and self.truth.dtype.itemsize == 1

        def kernel(elements: Foreign) -> None:
            if late:
                elements.fill_late(value)
            else:
                elements.write(value)

        with self.on_stream(stream):
            self.stencil(view, side, kernel)
        self.is_current(side, None)
        self.was_written(side, view, value, by_hull=True)

    def stencil(self, view: View, side: str, kernel: Callable[[Foreign], None]) -> None:
        through(view.storage, ENTRY[side], kernel, writes=True)

    # ---- Exports that are held. ----

    @rule(view=views, door=st.sampled_from(["asarray", "memoryview", "to_numpy", "dlpack"]))
    def hold_host(self, view: View, door: str) -> None:
        if HOST in self.sides and view.index.size and len(self.exports) < 3:
            array, owner = host_export(view.storage, door)
            self.exports.append(Export(HOST, view, array, owner))
            self.dirty[DEVICE] -= self.hull(view)

    @rule(view=views)
    def hold_device(self, view: View) -> None:
        if DEVICE in self.sides and view.index.size and len(self.exports) < 3:
            self.exports.append(Export(DEVICE, view, device_capsule(view.storage), None))
            self.dirty[HOST] -= self.hull(view)

    @precondition(lambda self: self.exports)
    @rule(data=st.data(), value=VALUES)
    def write_export(self, data: st.DataObject, value: int) -> None:
        """The holder looks at the storage first, because the export is not refreshed; then the holder writes.

        While only one side is exported, no mark is necessary. When both sides are, the writer marks the write.
        """
        export = self.exports[self.chosen(data)]
        side, view = export.side, export.view
        np.testing.assert_array_equal(self.shown(view, side), self.expected(view))
        self.is_current(side, None)
        np.testing.assert_array_equal(export.read(), self.expected(view))
        export.write(value)
        if len({held.side for held in self.exports}) == 2:
            self.mark_after_export(view, side)
            self.was_written(side, view, value, by_hull=True)
        else:
            self.truth.reshape(-1)[view.index] = value
            self.may_be_dirty[side] = True

    def chosen(self, data: st.DataObject) -> int:
        """A number, not the export itself: Hypothesis keeps what it has drawn from, and the export would live on."""
        return data.draw(st.integers(0, len(self.exports) - 1))

    def mark_after_export(self, view: View, side: str) -> None:
        mark(view.storage, side)

    @precondition(lambda self: self.exports)
    @rule(data=st.data())
    def drop(self, data: st.DataObject) -> None:
        export = self.exports.pop(self.chosen(data))
        alone = all(held.side == export.side for held in self.exports)
        if alone and self.has_mirrors and not self.may_be_dirty[OTHER[export.side]]:
            self.dirty[export.side] |= self.hull(export.view)
        self.may_be_dirty[export.side] = True
        del export
        gc.collect(0)

    # ---- Marks and synchronisation. ----

    @precondition(lambda self: not self.exports)
    @rule(view=views, side=st.sampled_from([HOST, DEVICE]))
    def mark(self, view: View, side: str) -> None:
        before = state_of(self.base.storage)
        hull = self.hull(view)
        conflict = self.has_mirrors and bool(hull & self.dirty[OTHER[side]])
        possible = self.has_mirrors and self.may_be_dirty[OTHER[side]]
        try:
            mark(view.storage, side)
        except gridbuf.SyncConflictError:
            assert possible, "nothing on the other side could be dirty"
            assert state_of(self.base.storage) == before
            return
        assert not conflict, "the other side alone knew some of these points"
        if self.has_mirrors:
            self.dirty[side] |= hull
            self.may_be_dirty[side] |= bool(hull)

    @rule(view=views, how=st.sampled_from(["device_to_host", "host_to_device", "synchronize"]))
    def synchronize(self, view: View, how: str) -> None:
        getattr(view.storage, how)()
        for side in (HOST, DEVICE):
            if how in (f"{OTHER[side]}_to_{side}", "synchronize"):
                self.is_current(side, None)
        if how == "synchronize" and not self.exports:
            assert state_of(self.base.storage) == 0

    @rule(view=views, source=st.sampled_from([HOST, DEVICE]))
    def force(self, view: View, source: str) -> None:
        """Everything is taken from one side; what only the other one knew is given up."""
        target = OTHER[source]
        getattr(view.storage, f"{source}_to_{target}")(force=True)
        if not self.has_mirrors:
            return
        shown = [self.shown(self.base, side) for side in (source, target)]
        np.testing.assert_array_equal(*shown)
        if not self.may_be_dirty[target]:
            np.testing.assert_array_equal(shown[0], self.truth)
        self.truth = np.array(shown[0], order="C")
        self.dirty = {HOST: set(), DEVICE: set()}
        self.may_be_dirty = dict.fromkeys(self.may_be_dirty, bool(self.exports))
        assert self.exports or state_of(self.base.storage) == 0

    @precondition(lambda self: not self.exports)
    @rule(view=views)
    def declare_synchronized(self, view: View) -> None:
        view.storage.synchronize()
        view.storage.set_synchronized()
        self.is_current(HOST, None)
        self.is_current(DEVICE, None)
        assert state_of(self.base.storage) == 0

    # ---- Copies, failures, delays. ----

    @rule(view=views, how=st.sampled_from([lambda s: s.copy(), copy.copy, copy.deepcopy]))
    def duplicate(self, view: View, how: Callable[[Any], Any]) -> None:
        twin = how(view.storage)
        assert twin.sync_state is None or twin.sync_state is not view.storage.sync_state
        other = View(twin, view.index)
        for side in self.sides:
            np.testing.assert_array_equal(self.shown(other, side), self.expected(view))
        twin[...] = 77  # private memory
        if self.has_mirrors:
            hull = self.hull(view)
            for known in self.dirty.values():
                known -= hull
            self.may_be_dirty = dict.fromkeys(self.may_be_dirty, True)

    @rule(
        view=views,
        operation=st.sampled_from(["copy", "order", "synchronize"]),
        call=st.integers(1, 3),
        side=st.sampled_from([HOST, DEVICE]),
        when_run=st.booleans(),
    )
    def fail(self, view: View, operation: str, call: int, side: str, when_run: bool) -> None:
        if side not in self.sides or self.kind == "cpu":
            return
        before = state_of(self.base.storage)
        with testing.failing(operation, call=call, when_run=when_run and operation == "copy"):
            try:
                through(view.storage, ENTRY[side], lambda _: None, writes=False)
            except RuntimeError as error:
                assert "injected" in str(error)
                assert state_of(self.base.storage) == before or self.exports
        np.testing.assert_array_equal(self.shown(view, side), self.expected(view))
        self.is_current(side, None)

    @rule(view=views, side=st.sampled_from([HOST, DEVICE]))
    def wait(self, view: View, side: str) -> None:
        if side in self.sides:
            with testing.delayed("copy", milliseconds=1):
                np.testing.assert_array_equal(self.shown(view, side), self.expected(view))
            self.is_current(side, None)

    @precondition(lambda self: self.kind != "cpu")
    @rule(view=views)
    def run_out_of_memory(self, view: View) -> None:
        if view.index.size:
            with testing.limited(0), pytest.raises(MemoryError):
                view.storage.copy()

    # ---- Always. ----

    @invariant()
    def what_is_dirty_is_said(self) -> None:
        if self.has_mirrors and not self.exports and hasattr(self, "base"):
            state = state_of(self.base.storage)
            assert state & 1 or not self.dirty[HOST]
            assert state & 2 or not self.dirty[DEVICE]

    def teardown(self) -> None:
        try:
            if hasattr(self, "base"):
                for side in self.sides:
                    np.testing.assert_array_equal(self.shown(self.base, side), self.truth)
        finally:
            self.exports.clear()
            testing.destroy_stream(self._streams[2])
            self._device.__exit__(None, None, None)


def host_export(storage: Any, door: str) -> tuple[np.ndarray, Any]:
    """A writable array over the storage's host memory, and what keeps it."""
    if door == "memoryview":
        view = memoryview(storage)
        return np.asarray(view), view
    if door == "dlpack":
        return np.from_dlpack(OnHost(storage)), None
    return (storage.to_numpy() if door == "to_numpy" else np.asarray(storage)), None


def mark(storage: Any, side: str) -> None:
    (storage.set_host_modified if side == HOST else storage.set_device_modified)()


def state_of(storage: Any) -> int:
    state: SyncState | None = storage.sync_state
    return 0 if state is None else int(state.state)


@pytest.mark.parametrize("kind", KINDS)
def test_storages_show_what_was_written_last(kind: str) -> None:
    machine = type(f"Model_{kind}", (Model,), {"kind": kind})
    run_state_machine_as_test(machine, settings=LONG)


@pytest.mark.parametrize(
    "examples", [60, pytest.param(600, marks=pytest.mark.thorough)], ids=["short", "thorough"]
)
def test_the_two_sides_may_have_any_layouts(examples: int) -> None:
    machine = type("Model_two_layouts", (Model,), {"two_layouts": True})
    run_state_machine_as_test(machine, settings=settings(LONG, max_examples=examples))


# ---- A model that cannot fail proves nothing. ----


class ForgetsTouch(Model):
    """A stencil that writes without a notice."""

    def stencil(self, view: View, side: str, kernel: Callable[[Foreign], None]) -> None:
        through(view.storage, ENTRY[side], kernel, writes=False)


class ForgetsAcquire(Model):
    """A reader of the memory without a synchronisation."""

    def shown(self, view: View, side: str) -> np.ndarray:
        described = entry(view.storage, ENTRY[side])
        return of_interface(described, view.storage, on_device=side == DEVICE).read()


class SaysNothingWithBothExported(Model):
    """A holder of an export that writes without a mark, while the other side is exported, too."""

    def chosen(self, data: st.DataObject) -> int:
        """A number, not the export itself: Hypothesis keeps what it has drawn from, and the export would live on."""
        return data.draw(st.integers(0, len(self.exports) - 1))

    def mark_after_export(self, view: View, side: str) -> None:
        pass


class ExpectsNoConflict(Model):
    """A model that forgets what one side alone knows."""

    def was_written(self, side: str, view: View, values: Any, *, by_hull: bool = False) -> None:
        super().was_written(side, view, values, by_hull=by_hull)
        self.dirty = {HOST: set(), DEVICE: set()}
        self.may_be_dirty = dict.fromkeys(self.may_be_dirty, False)


@pytest.mark.parametrize(
    "broken", [ForgetsTouch, ForgetsAcquire, SaysNothingWithBothExported, ExpectsNoConflict]
)
def test_the_model_notices(broken: type[Model]) -> None:
    quick = settings(
        LONG,
        max_examples=300,
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        report_multiple_bugs=False,
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(broken, settings=quick)
