"""The protocol of a call, proven with recording fakes: which step follows which, whatever raises wherever."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridbuf
import gridbuf.storage
import gridbuf.testing
from gridbuf import Field

SHAPE = (3, 4, 5)
STEPS = ("acquire", "read again", "dims", "touch", "release")


class Planned(Exception):
    """What a fake raises; `where` says which one."""

    def __init__(self, where):
        super().__init__(where)
        self.where = where


class Fake:
    """An array of another library that records the calls on it, and raises where the test asks for it.

    `acquire` moves its memory, as it may: a caller that did not read the interface again has the old address.
    """

    def __init__(self, name, log, raises=()):
        self.name, self.log, self.raises = name, log, raises
        self.old = np.full(SHAPE, -1.0)
        self.array = self.old
        self.new = np.zeros(SHAPE)
        self.reads = 0

    def _step(self, step):
        self.log.append((step, self.name))
        if (step, self.name) in self.raises:
            raise Planned((step, self.name))

    def _acquire(self):
        self._step("acquire")
        self.array = self.new

    @property
    def __gt_data_interface__(self):
        self.reads += 1
        self._step("read" if self.reads == 1 else "read again")
        hooks = {
            "acquire": self._acquire,
            "touch": lambda: self._step("touch"),
            "release": lambda: self._step("release"),
        }
        return {None: {**self.array.__array_interface__, **hooks}}

    @property
    def __gt_dims__(self):
        self._step("dims")
        return ("I", "J", "K")


def make_stencil(log, raises, *, writes=None):
    @gridbuf.stencil(writes=writes)
    def copied(a: Field[np.float64], b: Field[np.float64], c: Field[np.float64]):
        log.append(("run", None))
        assert a[0, 0, 0] == 0.0, "the interface was not read again after acquire"
        c[...] = 1.0
        if ("run", None) in raises:
            raise Planned(("run", None))
        return "done"

    return copied


def expected(raises, written):
    """The steps in order, and the exceptions in order, by the rules."""
    log, raised, acquired = [], [], []

    def step(*where):
        log.append(where)
        if where in raises:
            raised.append(where)
            return False
        return True

    def prepare():
        for name in "abc":
            if not (step("read", name) and step("acquire", name)):
                return False
            acquired.append(name)
        return all(step("read again", name) and step("dims", name) for name in "abc")

    if prepare():
        step("run", None)
        for name in "abc":
            if name in written:
                step("touch", name)
    for name in reversed(acquired):
        step("release", name)
    return log, raised


def chain_of(error):
    while error is not None:
        yield error
        error = error.__context__


def call_and_check(raises, writes):
    log = []
    fakes = [Fake(name, log, raises) for name in "abc"]
    stencil = make_stencil(log, raises, writes=writes)
    steps, raised = expected(raises, "abc" if writes is None else writes)
    if not raised:
        assert stencil(*fakes) == "done"
        assert log == steps
        return
    with pytest.raises(Planned) as caught:
        stencil(*fakes)
    assert log == steps
    found = [error.where for error in chain_of(caught.value) if isinstance(error, Planned)]
    assert found[0] == raised[0], "the first exception is the call's"
    assert sorted(found, key=str) == sorted(raised, key=str), "and no other is lost"


POINTS = [
    ("run", None),
    *((step, name) for step in ("read", *STEPS) for name in "abc"),
]


@pytest.mark.parametrize("point", [None, *POINTS], ids=str)
@pytest.mark.parametrize("writes", [None, ("c",), ()], ids=str)
def test_each_step_follows_its_rule_wherever_one_raises(point, writes):
    call_and_check({point}, writes)


@given(
    raises=st.sets(st.sampled_from(POINTS)),
    writes=st.none() | st.sets(st.sampled_from("abc")).map(tuple),
)
def test_order_holds_whatever_raises_together(raises, writes):
    call_and_check(raises, writes)


def test_a_later_exception_is_shown_with_the_first():
    log = []
    fakes = [Fake(name, log, {("release", "a")}) for name in "abc"]
    with pytest.raises(Planned) as caught:
        make_stencil(log, {("run", None)})(*fakes)
    assert caught.value.where == ("run", None)
    assert caught.value.__notes__ == ["then Planned was raised by field 'a', step: release"]
    assert caught.value.__context__.__notes__ == ["raised by field 'a' of a stencil, step: release"]


def test_the_same_exception_object_twice_makes_no_circle():
    error = ValueError("both")

    def again():
        raise error

    array = np.zeros(SHAPE)

    class Twice:
        __gt_data_interface__ = {
            None: {**array.__array_interface__, "touch": again, "release": again}
        }

    @gridbuf.stencil
    def nothing(a: Field[np.float64]):
        pass

    with pytest.raises(ValueError, match="both") as caught:
        nothing(Twice())
    assert list(chain_of(caught.value)) == [error]


def test_one_object_for_two_fields_is_acquired_and_released_for_each():
    log = []
    fake = Fake("a", log)
    array = np.zeros(SHAPE)
    make_stencil(log, (), writes="c")(fake, fake, array)
    assert [step for step, _ in log].count("acquire") == 2
    assert [step for step, _ in log].count("release") == 2
    assert log.index(("read again", "a")) > log.index(("acquire", "a"))


def test_a_failed_check_releases_and_touches_nothing():
    log = []
    fakes = [Fake(name, log) for name in "abc"]
    with pytest.raises(ValueError, match="field 'a', dimension I: the number of points"):
        make_stencil(log, ())(*fakes, domain=(9, 1, 1))
    assert ("run", None) not in log
    assert not [step for step, _ in log if step == "touch"]
    assert [where for where in log if where[0] == "release"] == [
        ("release", name) for name in "cba"
    ]


def test_arguments_that_do_not_fit_acquire_nothing():
    log = []
    fakes = [Fake(name, log) for name in "abc"]
    stencil = make_stencil(log, ())
    for call in (
        lambda: stencil(*fakes, 1),
        lambda: stencil(*fakes[:2]),
        lambda: stencil(*fakes, origin=1.5),
        lambda: stencil(*fakes, domain="abc"),
    ):
        with pytest.raises(TypeError):
            call()
    assert log == []


def test_storages_are_marked_before_and_after_the_function_and_on_the_side_it_uses():
    seen = []

    @gridbuf.stencil(writes="out")
    def copied(a: Field[np.float64], out: Field[np.float64]):
        seen.append((a_storage.sync_state.state, out_storage.sync_state.state))
        out[...] = a
        raise Planned("run")

    with gridbuf.testing.emulated_device(), warnings.catch_warnings():
        warnings.simplefilter("error")
        a_storage = gridbuf.storage.full(SHAPE, 2.0, device="gpu")
        out_storage = gridbuf.storage.zeros(SHAPE, device="gpu")
        a_storage.synchronize()
        out_storage.synchronize()
        clean, host_dirty = (
            gridbuf.storage.SyncState.SYNC_CLEAN,
            gridbuf.storage.SyncState.SYNC_HOST_DIRTY,
        )
        with pytest.raises(Planned):
            copied(a_storage, out_storage)
        assert seen == [(clean, host_dirty)]
        assert a_storage.sync_state.state == clean
        assert out_storage.sync_state.state == host_dirty  # Something may have been written.
        assert float(out_storage[0, 0, 0]) == 2.0


def test_a_foreign_producer_of_a_storage_is_touched():
    log = []
    fake = Fake("a", log)
    storage = gridbuf.storage.as_storage(fake, device=None)
    del log[:]

    @gridbuf.stencil
    def filled(a: Field[np.float64]):
        a[...] = 3.0

    filled(storage)
    assert log == [("touch", "a")]
    assert fake.new[0, 0, 0] == 3.0


FIELD = {
    "name": "a",
    "dims": ("I",),
    "dtype": "f8",
    "data_shape": (),
    "layout": None,
    "alignment_size": 1,
    "preferred_layout": None,
    "preferred_alignment_size": 1,
    "reach": None,
    "is_written": True,
    "is_optional": False,
}


def rules():
    return gridbuf._core._make_rules(
        name="s", on_device=False, writes_are_declared=False, allow_alias=False
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"name": 5},
        {"dims": 5},
        {"dims": ("I", "I")},
        {"dtype": "O"},
        {"data_shape": (1, 2)},
        {"data_shape": None},
        {"layout": (1,)},
        {"alignment_size": 0},
        {"preferred_layout": 5},
        {"preferred_alignment_size": None},
        {"reach": ((1, 1), (1, 1))},
        {"reach": ((-1, 0),)},
        {"is_written": "no"},
        {"more": 1},
    ],
    ids=str,
)
def test_absurd_declarations_end_in_an_exception(changed):
    with pytest.raises((TypeError, ValueError)):
        rules().add_field(**{**FIELD, **changed})


@pytest.mark.parametrize(
    "args",
    [
        (),
        (5, None, None, None),
        ((), None, None, None),
        ([np.zeros(2)] * 2, None, None, None),
        ([np.zeros(2)], 5, None, None),
        ([np.zeros(2)], [], None, None),
        ([np.zeros(2)], None, 5, None),
        ([np.zeros(2)], None, None, 5),
        ([np.zeros(2)], None, None, None, 5),
        ([np.zeros(2)], None, None, None, []),
        ([np.zeros(2)], None, None, None, [5]),
    ],
    ids=range(11),
)
def test_absurd_calls_end_in_an_exception(args):
    declared = rules()
    declared.add_field(**FIELD)
    assert declared.bind([np.zeros(2)], None, None, None).domain == (2,)
    with pytest.raises((TypeError, IndexError, RuntimeError)):
        declared.bind(*args)


def test_objects_of_a_call_cannot_be_made_or_misused():
    for kind in (gridbuf._core.StencilRules, gridbuf._core.BoundStencil):
        with pytest.raises(TypeError, match="cannot be called"):
            kind()
        with pytest.raises(TypeError):
            kind.__new__(kind)
    declared = rules()
    declared.add_field(**FIELD)
    call = declared.bind([np.zeros(2)], None, None, None)
    for misuse in (
        lambda: call.begin_write(1),
        lambda: call.end(1, True),
        lambda: call.end("0", True),
        lambda: gridbuf._core._array_of(np.zeros(2)),
    ):
        with pytest.raises((IndexError, TypeError)):
            misuse()
    call.end(0, True)
    call.end(0, True)
