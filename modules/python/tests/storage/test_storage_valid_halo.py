"""How deep halos are valid, against an oracle: the values themselves.

Four ranks, in one process, make the same random steps: writes to boxes, exchanges to a depth, views, copies, pickles, marks,
stencils that compute outside of the domain. Every write gives a point a value that no point ever had. So a point of a halo
is valid if and only if it has the value that its owner's domain has now. `valid_halo` may never say more.
"""

from __future__ import annotations

import copy
import inspect
import itertools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gridbuf
import gridbuf.storage
import numpy as np
import pytest
from foreign import emulated
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test

STEPS = settings(
    max_examples=20,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
WIDTH = st.tuples(st.integers(0, 2), st.integers(0, 2))


class Model(RuleBasedStateMachine):
    """See the head of the file. Fields have dims J, I (cut, two parts each) and K (not cut)."""

    kind: dict[str, Any] = {}
    counts = {"points": 0, "stale": 0}

    @initialize(
        periodic=st.tuples(st.booleans(), st.booleans()),
        widths=st.tuples(WIDTH, WIDTH, st.just((1, 0))),
        extents=st.tuples(st.integers(2, 5), st.integers(2, 5), st.just(2)),
        order=st.permutations(range(3)),
    )
    def make(self, periodic: Any, widths: Any, extents: Any, order: Any) -> None:
        self.periodic, self.halo, self.domain = periodic, widths, extents
        shape = tuple(n + lo + up for n, (lo, up) in zip(extents, widths, strict=True))
        self.places = list(itertools.product((0, 1), (0, 1)))
        self.next = 1.0
        self.fields = {}
        for place in self.places:
            field = gridbuf.storage.empty(
                shape, dims="JIK", halo=widths, layout=tuple(order), **self.kind
            )
            field[...] = self.values(shape)
            field._close_halo(self.closed(place), -1)
            self.fields[place] = field
        assert self.valid == self.least()

    # --- What the ranks are ---

    def closed(self, place: tuple[int, int]) -> list[tuple[int, int]]:
        ends = [(2, 0), (2, 1)]
        for axis in (0, 1):
            ends += [(axis, e) for e in (0, 1) if self.other(place, axis, 2 * e - 1) is None]
        return ends

    def other(self, place: tuple[int, int], axis: int, step: int) -> tuple[int, int] | None:
        moved = list(place)
        moved[axis] += step
        if self.periodic[axis]:
            moved[axis] %= 2
        return None if moved[axis] not in (0, 1) else (moved[0], moved[1])

    def owner(self, place: tuple[int, int], offset: tuple[int, int]) -> tuple[int, int] | None:
        for axis, step in enumerate(offset):
            if step:
                moved = self.other(place, axis, step)
                if moved is None:
                    return None
                place = moved
        return place

    def values(self, shape: Any) -> np.ndarray:
        count = int(np.prod(shape))
        self.next += count
        return np.arange(self.next - count, self.next).reshape(shape)

    def part(self, axis: int, step: int, depth: tuple[int, int], *, sent: bool) -> slice:
        """The points that a neighbour gives: `sent` in its domain, else in the halo."""
        lower, extent = self.halo[axis][0], self.domain[axis]
        end = lower + extent
        if not step:
            return slice(lower, end)
        if step > 0:
            return slice(lower, lower + depth[1]) if sent else slice(end, end + depth[1])
        return slice(end - depth[0], end) if sent else slice(lower - depth[0], lower)

    def least(self) -> tuple[tuple[int, int], ...]:
        """The depth at ends with a neighbour, the least of all ranks; K is not cut."""
        found = []
        for axis in range(2):
            ends = []
            for end in (0, 1):
                open_ = [
                    f.valid_halo[axis][end]
                    for p, f in self.fields.items()
                    if self.other(p, axis, 2 * end - 1) is not None
                ]
                ends.append(min(open_, default=self.halo[axis][end]))
            found.append((ends[0], ends[1]))
        return tuple(found)

    @property
    def valid(self) -> tuple[tuple[int, int], ...]:
        return tuple(
            tuple(self.halo[a][e] if not self.has_open(a, e) else 0 for e in (0, 1)) for a in (0, 1)
        )  # type: ignore[return-value]

    def has_open(self, axis: int, end: int) -> bool:
        return any(self.other(p, axis, 2 * end - 1) is not None for p in self.places)

    # --- Steps ---

    @rule(data=st.data(), step=st.sampled_from([1, 1, 2, -1]))
    def write(self, data: st.DataObject, step: int) -> None:
        key = []
        for extent, (lower, upper) in zip(self.domain, self.halo, strict=True):
            first = data.draw(st.integers(0, lower + extent + upper))
            last = data.draw(st.integers(first, lower + extent + upper))
            key.append(slice(first, last, 1) if step > 0 else slice(first, last))
        if step == -1:
            key = [slice(None, None, -1)] * 3
        if step == 2:
            key = [slice(part.start, part.stop, 2) for part in key]
        for field in self.fields.values():
            view = field[tuple(key)]
            view[...] = self.values(view.shape)

    @rule()
    def write_the_inner_domain(self) -> None:
        key = tuple(
            slice(lo + min(up, n // 2), lo + n - min(lo, n // 2))
            for n, (lo, up) in zip(self.domain, self.halo, strict=True)
        )
        for field in self.fields.values():
            if field[key].size:
                field[key] = self.values(field[key].shape)

    @rule(depth=st.integers(0, 2), overlaps=st.booleans())
    def exchange(self, depth: int, overlaps: bool) -> None:
        depths = tuple(
            (min(lo, n, depth), min(up, n, depth))
            for n, (lo, up) in zip(self.domain, self.halo, strict=True)
        )
        source = {p: f._elements().copy() for p, f in self.fields.items()}
        for field in self.fields.values():
            self.expect(field, depths)
        if overlaps:
            self.write_the_inner_domain()
        expected = {p: f._expected_halo() for p, f in self.fields.items()}
        for place, field in self.fields.items():
            array = field._own_memory()
            for offset in itertools.product((-1, 0, 1), repeat=2):
                owner = self.owner(place, offset) if any(offset) else None
                if owner is None:
                    continue
                steps = (*offset, 0)
                to = tuple(self.part(a, s, depths[a], sent=False) for a, s in enumerate(steps))
                fro = tuple(self.part(a, s, depths[a], sent=True) for a, s in enumerate(steps))
                gridbuf.copyto(array[to], source[owner][fro])
            field._halo_arrives(expected[place])

    def expect(self, field: Any, depths: Any) -> None:
        found = field.valid_halo
        field._expect_halo(
            [
                [max(f, d) for f, d in zip(have, want, strict=True)]
                for have, want in zip(found, (*depths[:2], found[2]), strict=True)
            ]
        )

    @rule()
    def mark_stale(self) -> None:
        for field in self.fields.values():
            field.mark_halo_stale()
        assert self.least() == self.valid

    @rule(how=st.sampled_from(["copy", "deepcopy", "pickle"]))
    def replace(self, how: str) -> None:
        for place, field in self.fields.items():
            before = field.valid_halo
            if how == "copy":
                made = field.copy()
            elif how == "deepcopy":
                made = copy.deepcopy(field)
            else:
                made = pickle.loads(pickle.dumps(field))
            assert made.valid_halo == before
            made._close_halo(self.closed(place), -1)
            self.fields[place] = made

    @precondition(lambda self: bool(self.kind))
    @rule(side=st.sampled_from(["host", "device"]))
    def use_a_side(self, side: str) -> None:
        for field in self.fields.values():
            field.device_to_host() if side == "host" else field.host_to_device()

    @rule(data=st.data())
    def look_at_a_view(self, data: st.DataObject) -> None:
        """A view's depth is that of the points it shows."""
        field = self.fields[self.places[0]]
        axis = data.draw(st.integers(0, 1))
        first = data.draw(st.integers(0, field.shape[axis] - 1))
        key = [slice(None)] * 3
        key[axis] = slice(first, None)
        view = field[tuple(key)]
        shown = tuple(map(min, field.valid_halo[axis], view.halo[axis]))
        assert view.valid_halo[axis] == (shown if view.shape[axis] > 1 else (0, 0))
        assert field.T.valid_halo == field.valid_halo[::-1]
        assert field.domain_view.valid_halo == ((0, 0),) * 3

    # --- The oracle ---

    @invariant()
    def no_point_is_called_valid_that_is_not(self) -> None:
        if not hasattr(self, "fields"):
            return
        current = {p: f._elements() for p, f in self.fields.items()}
        for place, field in self.fields.items():
            depths = field.valid_halo
            assert all(d <= h for pair, halo in zip(depths, self.halo) for d, h in zip(pair, halo))
            for offset in itertools.product((-1, 0, 1), repeat=2):
                owner = self.owner(place, offset) if any(offset) else None
                if owner is None:
                    continue
                steps = (*offset, 0)
                if any(depths[a][s > 0] > self.domain[a] for a, s in enumerate(offset) if s):
                    continue  # the values are those of the neighbour's neighbour
                to = tuple(self.part(a, s, depths[a], sent=False) for a, s in enumerate(steps))
                fro = tuple(self.part(a, s, depths[a], sent=True) for a, s in enumerate(steps))
                assert np.array_equal(current[place][to], current[owner][fro]), (place, offset)
                whole = tuple(
                    self.part(a, s, self.halo[a], sent=False) for a, s in enumerate(steps)
                )
                true = tuple(self.part(a, s, self.halo[a], sent=True) for a, s in enumerate(steps))
                if current[place][whole].shape == current[owner][true].shape:
                    same = np.count_nonzero(current[place][whole] == current[owner][true])
                    self.counts["points"] += same
                    self.counts["stale"] += same - current[place][to].size


KINDS = ("host", "both sides", "two layouts")


@pytest.mark.parametrize("kind", KINDS)
def test_valid_is_never_said_of_a_point_that_is_not(kind: str) -> None:
    live(kind, STEPS)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_valid_is_never_said_in_long_lives(kind: str) -> None:
    live(kind, settings(STEPS, max_examples=180))


def live(kind: str, steps: settings) -> None:
    """Random lives of storages of a kind; prints how often valid points were called stale."""
    if kind == "host":
        machine = type("OnHost", (Model,), {"counts": {"points": 0, "stale": 0}})
        run_state_machine_as_test(machine, settings=steps)
    else:
        options: dict[str, Any] = {"device": "gpu", "managed": "gt4py"}
        if kind == "two layouts":
            options["device_layout"] = (2, 0, 1)
        machine = type("OnBoth", (Model,), {"kind": options, "counts": {"points": 0, "stale": 0}})
        with emulated():
            run_state_machine_as_test(machine, settings=steps)
    points, stale = machine.counts["points"], machine.counts["stale"]
    print(f"{stale} of {points} valid points were called stale")
    assert points > 1000 and stale < points


# ---- What others may write. ----

EXPORTS: dict[str, Callable[[Any], Any]] = {
    "to_numpy": lambda field: field.to_numpy(),
    "numpy.asarray": np.asarray,
    "buffer protocol": memoryview,
    "DLPack": np.from_dlpack,
    "array interface": lambda field: field.__array_interface__,
    "data interface": lambda field: field.__gt_data_interface__,
    "as_numpy": gridbuf.as_numpy,
    "as_buffer": gridbuf.as_buffer,
    "to_c": gridbuf.storage.to_c,
    "other names": lambda field: gridbuf.storage.as_storage(field, dims="AB"),
}


def made(**keywords: Any) -> Any:
    return gridbuf.storage.zeros((6, 6), halo=(1, 1), **keywords)


@pytest.mark.parametrize("name", EXPORTS)
def test_whoever_may_write_is_remembered(name: str) -> None:
    field = made()
    assert not field._was_exported
    keep = EXPORTS[name](field)
    # A handle of gridbuf.h is of the storage itself, whose writes are seen.
    assert field._was_exported == (name != "to_c")
    del keep
    assert gridbuf.storage.as_storage(np.zeros((6, 6)), halo=(1, 1))._was_exported
    assert not gridbuf.storage.storage(np.zeros((6, 6)), halo=(1, 1))._was_exported


def test_what_is_read_only_cannot_be_written() -> None:
    field = made()
    text = repr(field), field.sum(), field + 1, field.copy(), pickle.dumps(field), field[1, 1]
    assert text and not field._was_exported


def test_another_halo_has_no_valid_point() -> None:
    field = made()
    field.halo = (2, 2)
    assert field.valid_halo == ((0, 0), (0, 0)) and field[1:].valid_halo == ((0, 0), (0, 0))
    field.halo = (1, 1)
    assert field.valid_halo == ((1, 1), (1, 1))
    field.halo = (2, 0)
    field.mark_halo_valid((1, 0))
    assert field.valid_halo == ((1, 1), (0, 0))
    field.halo = (1, 1)
    assert field.valid_halo == ((0, 0), (0, 0))


def test_fields_like_one_of_a_decomposition_belong_to_it() -> None:
    field = made()
    field._close_halo([(0, 0), (1, 1)], 6)
    field[...] = 1.0
    closed = ((1, 0), (0, 1))
    assert field.valid_halo == closed
    for like in (
        field.copy(),
        copy.copy(field),
        copy.deepcopy(field),
        gridbuf.storage.storage(field),
    ):
        assert like._halo_check == 6 and like.valid_halo == closed
    for like in (gridbuf.storage.zeros_like(field), gridbuf.storage.full_like(field, 2)):
        assert like._halo_check == 6 and like.valid_halo == ((1, 1), (1, 1))
        like[...] = 0.0
        assert like.valid_halo == closed
    assert gridbuf.storage.empty_like(field).valid_halo == closed
    for other in (gridbuf.storage.zeros_like(field, halo=(0, 1)), field[1:].copy(), made()):
        assert other._halo_check == -1


def test_a_stencils_write_is_named_by_the_line_that_calls_it() -> None:
    @gridbuf.stencil(writes="out", extents={"out": 1})
    def add(out: gridbuf.Field[np.float64, gridbuf.IJ]) -> None:
        out[1:-1, 1:-1] += 1.0

    field = made()
    add(field)
    assert Path(field._stale_place.rpartition(":")[0]).name == Path(__file__).name
    with pytest.warns(gridbuf.StaleHaloWarning, match="reads 1 point of the lower halo") as warned:
        add(field, halo_check="warn")
    assert {Path(one.filename).name for one in warned} == {Path(__file__).name}
    assert "halo_check" in str(inspect.signature(add))


def test_a_place_that_is_no_utf8_or_has_no_code_is_no_failure() -> None:
    for file, shown in (("\udcff.py", "\udcff.py:2"), ("a\nb.py", "a\nb.py:2"), ("", ":2")):
        field = made()
        exec(compile("\nfield[...] = 1.0", file, "exec"), {"field": field})
        assert field._stale_place == shown

    @gridbuf.stencil(writes="out", extents={"out": 1})
    def fails(out: gridbuf.Field[np.float64, gridbuf.IJ]) -> None:
        raise KeyError("its own")

    field = made()
    with pytest.raises(KeyError, match="its own"):  # the write ends while this is raised
        fails(field)
    assert field.valid_halo == ((0, 0), (0, 0))


def test_wrong_ends_and_calls_that_are_not_bound_are_errors() -> None:
    field = made()
    for place in ((2, 0), (-1, 0), (0, 2), (0, -1), (99, 99)):
        with pytest.raises(ValueError, match="an end of a halo is"):
            field._close_halo([place], 2)
    assert field.valid_halo == ((1, 1), (1, 1))
    rules = gridbuf._core._make_rules(
        name="s", on_device=False, writes_are_declared=True, allow_alias=False, knows_reach=True
    )
    memory = {"layout": None, "alignment_size": 1, "preferred_layout": None}
    rules.add_field(
        name="a",
        dims="IJ",
        dtype="f8",
        data_shape=(),
        **memory,
        preferred_alignment_size=1,
        reach=None,
        is_read=True,
        is_written=True,
        is_optional=False,
    )
    assert rules.bind([field], None, None, None).stale == []

    class Foreign:
        __array_interface__ = np.zeros((6, 6)).__array_interface__

    unbound = rules.bind([Foreign()], None, None, None)
    unbound.check_halos()
    assert unbound.is_foreign and unbound.stale == []
