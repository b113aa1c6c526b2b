"""Calls of stencils: dimensions, origins, domains, checks, arguments, annotations."""

import inspect
import warnings
from typing import Annotated

import numpy as np
import pytest

import gridbuf
import gridbuf.storage
import gridbuf.testing
from gridbuf import (
    IJ,
    IJK,
    IK,
    Alignment,
    Axes,
    DefaultParameters,
    DType,
    ExpensiveCopyWarning,
    Field,
    K,
    LayoutMap,
    SlowFieldWarning,
)

F64 = Field[np.float64]
ONLY_J = Field[np.float64, Axes["J"]]
I_AND_10 = Field[np.float64, Axes["I", "10"]]


@pytest.fixture(autouse=True)
def _warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@gridbuf.stencil(writes=())
def seen(a: F64, b: F64 = None, *, origin, domain):
    """What a call makes of its fields."""
    return a, b, origin, domain


class Foreign:
    """Memory of another library: an entry of a data interface with more keys, and attributes."""

    def __init__(self, array, **attributes):
        self.array, self.entry = array, {}
        for name, value in attributes.items():
            if name in ("dims", "halo"):
                self.entry[name] = value
            else:
                setattr(self, name, value)

    @property
    def __gt_data_interface__(self):
        return {None: {**self.array.__array_interface__, **self.entry}}


def numbered(shape, dtype=np.float64):
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


# ---- Dimensions. ----


def test_an_array_in_order_is_passed_on_as_it_is():
    array = numbered((3, 4, 5))
    assert seen(array)[0] is array


@pytest.mark.parametrize("order", ["KIJ", "JKI", "KJI"])
def test_dimensions_are_put_into_the_order_of_the_annotation(order):
    array = numbered([{"I": 3, "J": 4, "K": 5}[name] for name in order])
    wanted = array.transpose([order.index(name) for name in "IJK"])
    plain = gridbuf.zeros(array.shape, dims=order)
    plain[...] = array
    storage = gridbuf.storage.storage(array, dims=order)
    buffer = gridbuf.as_buffer(array, dims=order)
    named = Foreign(array, __gt_dims__=tuple(order))
    entry = Foreign(array, dims=tuple(order))
    by_attribute = Foreign(array)
    by_attribute.dims = list(order)
    for given in (plain, storage, buffer, named, entry, by_attribute):
        found = seen(given)[0]
        assert type(found) is np.ndarray
        assert np.array_equal(found, wanted)
        found[2, 3, 4] = -1.0  # A view of the memory, not a copy.
        given = given if isinstance(given, np.ndarray) else gridbuf.as_numpy(given)
        assert given[tuple({"I": 2, "J": 3, "K": 4}[name] for name in order)] == -1.0
        given[...] = array


def test_names_default_to_those_of_the_annotation():
    @gridbuf.stencil
    def shape(a: Field[np.float64, IK]):
        return a.shape

    assert shape(gridbuf.zeros((3, 5))) == (3, 5)
    assert shape(np.zeros((3, 5))) == (3, 5)


def test_data_dimensions_come_last_in_the_order_of_their_numbers():
    @gridbuf.stencil
    def shape(a: Field[(np.float64, (2, 7))]):
        return a.shape

    storage = gridbuf.storage.zeros((7, 3, 2, 5, 4), dims=("1", "I", "0", "K", "J"))
    assert shape(storage) == (3, 4, 5, 2, 7)
    with pytest.raises(ValueError, match=r"field 'a', dimension 1: its extent is 6, but must be 7"):
        shape(np.zeros((3, 4, 5, 2, 6)))

    @gridbuf.stencil
    def any_extent(a: I_AND_10):
        return a.shape

    assert any_extent(np.zeros((3, 6))) == (3, 6)


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        (np.zeros((3, 4)), "field 'a': the number of dimensions is 2, but must be 3, for "),
        (np.zeros(()), "field 'a': the number of dimensions is 0, but must be 3"),
        (
            Foreign(np.zeros((3, 4, 5)), __gt_dims__=("I", "J", "0")),
            r"field 'a', dimension K: its dims is \('I', 'J', '0'\), but must be \('I', 'J', 'K'\)",
        ),
        (
            Foreign(np.zeros((3, 4, 5)), dims=("lat", "lon", "K")),
            r"field 'a', dimension I: its dims is \('lat', 'lon', 'K'\), but must be \('I', 'J', 'K'\)",
        ),
    ],
)
def test_dimensions_that_are_not_the_annotations(argument, words):
    with pytest.raises(ValueError, match=words):
        seen(argument)


@pytest.mark.parametrize("argument", [1.5, [1.0], "abc", object(), None, [[[1.0]]]])
def test_what_offers_no_memory_is_a_type_error(argument):
    with pytest.raises(TypeError, match="field 'a', all dimensions: the argument is .* float64"):
        seen(argument)


@pytest.mark.parametrize("dtype", ["float32", "int64", ">f8", "complex128", "bool", "V8"])
def test_another_element_type_is_a_type_error(dtype):
    with pytest.raises(TypeError, match="field 'b', all dimensions: the element type is .*float64"):
        seen(np.zeros((3, 4, 5)), np.zeros((3, 4, 5), dtype))


def test_structured_types_are_compared_by_their_fields():
    kind = np.dtype([("x", "f4"), ("y", "f4")])

    @gridbuf.stencil
    def of_pairs(a: Field[kind, IJ]):
        return a.dtype

    assert of_pairs(np.zeros((2, 2), kind)) == kind
    with pytest.raises(TypeError, match="field 'a', all dimensions: the element type"):
        of_pairs(np.zeros((2, 2), [("x", "f4"), ("z", "i4")]))


# ---- Origins. ----

HALO = ((1, 2), (0, 1), (2, 0))


def test_origin_of_the_call_wins_over_the_objects_over_the_halo_over_zero():
    array = np.zeros((9, 9, 9))
    everything = Foreign(array, halo=HALO, __gt_origin__=(3, 4, 5))
    with_halo = Foreign(array, halo=HALO)

    def origin_of(a, **keywords):
        return seen(a, domain=(1, 1, 1), **keywords)[2]["a"]

    assert origin_of(everything, origin=(6, 7, 8)) == (6, 7, 8)
    assert origin_of(everything, origin={"a": (6, 7, 8)}) == (6, 7, 8)
    assert origin_of(everything, origin={"a": (6, 7, 8), "_all_": (0, 0, 0)}) == (6, 7, 8)
    assert origin_of(everything, origin={"b": (6, 7, 8), "_all_": (1, 1, 1)}) == (1, 1, 1)
    assert origin_of(everything, origin={"a": None}) == (3, 4, 5)
    assert origin_of(everything) == (3, 4, 5)
    assert origin_of(Foreign(array, halo=HALO, default_origin=(3, 4, 5))) == (3, 4, 5)
    assert origin_of(with_halo) == (1, 0, 2)
    assert origin_of(Foreign(array)) == (0, 0, 0)
    assert origin_of(array) == (0, 0, 0)


def test_a_method_that_returns_the_origin_is_called():
    a = Foreign(np.zeros((9, 9, 9)))
    a.__gt_origin__ = lambda: (3, 4, 5)
    assert seen(a)[2] == {"a": (3, 4, 5)}


def test_asymmetric_halo_and_permuted_dimensions_together():
    storage = gridbuf.storage.zeros((8, 7, 9), dims="KIJ", halo=((2, 0), (1, 2), (0, 1)))
    a, _, origin, domain = seen(storage)
    assert a.shape == (7, 9, 8)
    assert origin == {"a": (1, 0, 2)}
    assert domain == (4, 8, 6)
    foreign = Foreign(np.zeros((8, 7, 9)), dims=tuple("KIJ"), halo=((2, 0), (1, 2), (0, 1)))
    assert seen(foreign)[2:] == ({"a": (1, 0, 2)}, (4, 8, 6))


def test_a_halo_that_is_set_later_moves_a_storages_origin_and_not_what_is_aligned():
    storage = gridbuf.storage.zeros((8, 8, 8), halo=(1, 1, 1))
    storage.halo = (3, 3, 3)
    assert storage.aligned_index == (1, 1, 1)
    assert seen(storage)[2:] == ({"a": (3, 3, 3)}, (2, 2, 2))


def test_a_tuple_for_all_gives_each_field_its_entries():
    @gridbuf.stencil
    def origins(a: F64, b: Field[np.float64, IK], c: Field[(np.float64, (2,)), K], *, origin):
        return origin

    fields = np.zeros((9, 9, 9)), np.zeros((9, 9)), np.zeros((9, 2))
    assert origins(*fields, origin=(1, 2, 3)) == {"a": (1, 2, 3), "b": (1, 3), "c": (3, 0)}
    assert origins(*fields, origin={"c": (3, 1)})["c"] == (3, 1)


@pytest.mark.parametrize(
    ("origin", "error", "words"),
    [
        ((1, 1), ValueError, r"origin is \(1, 1\), but must be a tuple with an entry for each of"),
        ((1, -1, 0), ValueError, "origin, dimension J is -1, but must be at least 0"),
        ({"a": (0, 0, 6)}, ValueError, "field 'a', dimension K: the origin is 6, .* extent, 5"),
        ({"a": (0, -1, 0)}, ValueError, "field 'a', dimension J: the origin is -1, .* from 0"),
        ({"a": (1,)}, ValueError, r"field 'a': the origin is \(1,\), but must be a tuple"),
        ({"q": (0, 0, 0)}, ValueError, "origin is for 'q', but must be for fields .* 'a', 'b'"),
        ({1: (0, 0, 0)}, ValueError, "origin is for 1, but must be for fields"),
        ((1.0, 1, 1), TypeError, "origin"),
        ("abc", TypeError, "origin is 'abc', but must be a dict of tuples"),
        (3, TypeError, "origin is 3, but must be a dict of tuples"),
        ((1, 2**70, 1), ValueError, "origin"),
    ],
)
def test_origins_that_cannot_be(origin, error, words):
    with pytest.raises(error, match=words):
        seen(np.zeros((3, 4, 5)), origin=origin)


def test_an_origin_that_an_object_declares_is_checked():
    a = Foreign(np.zeros((3, 4, 5)), __gt_origin__=(1, 2))
    with pytest.raises(ValueError, match=r"field 'a': the origin that it declares .* is \(1, 2\)"):
        seen(a)


# ---- Domains. ----


def test_the_domain_is_the_least_of_all_fields_without_upper_halos():
    a = gridbuf.storage.zeros((10, 10, 10), halo=((1, 2), (0, 0), (0, 5)))
    b = np.zeros((9, 8, 7))
    assert seen(a, b)[3] == (7, 8, 5)
    assert seen(a, b, origin={"b": (4, 0, 0)})[3] == (5, 8, 5)
    assert seen(a, b, domain=(2, 3, 4))[3] == (2, 3, 4)
    assert seen(a, b, domain=(2, 3, 7))[3] == (2, 3, 7)  # Into the halo, where it is asked for.


def test_a_domain_has_the_dimensions_that_any_field_has():
    @gridbuf.stencil
    def domain_of(a: Field[np.float64, K], b: ONLY_J, *, domain):
        return domain

    assert domain_of(np.zeros(5), np.zeros(4)) == (4, 5)
    with pytest.raises(ValueError, match=r"domain is \(1, 1, 1\), .* each of \('J', 'K'\)"):
        domain_of(np.zeros(5), np.zeros(4), domain=(1, 1, 1))


def test_nothing_to_compute_is_a_domain():
    assert seen(np.zeros((0, 4, 5)))[3] == (0, 4, 5)
    assert seen(gridbuf.storage.zeros((4, 4, 4), halo=(2, 0, 0)))[3] == (0, 4, 4)


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        (
            {"domain": (3, 4, 6)},
            "field 'a', dimension K: the number of points from its origin, 0 is 5, but must be at "
            "least the domain's, 6",
        ),
        (
            {"domain": (3, 4, 5), "origin": {"b": (0, 2, 0)}},
            "field 'b', dimension J: the number of points from its origin, 2 is 2, .* 4",
        ),
        ({"domain": (1, 1)}, r"domain is \(1, 1\), but must be a tuple with an entry for each of"),
        ({"domain": (1, -1, 1)}, "domain, dimension J is -1, but must be at least 0"),
        ({"domain": (1, 2**63 - 1, 1)}, "field 'a', dimension J: .* is 4, .* 9223372036854775807"),
    ],
)
def test_domains_that_lie_outside_are_errors(keywords, words):
    with pytest.raises(ValueError, match=words):
        seen(np.zeros((3, 4, 5)), np.zeros((3, 4, 5)), **keywords)


def test_a_halo_larger_than_what_is_left_behind_the_origin():
    a = Foreign(np.zeros((4, 4, 4)), halo=((0, 3), (0, 0), (0, 0)), __gt_origin__=(2, 0, 0))
    with pytest.raises(ValueError, match="'a', dimension I: its extent is 4, .* 2, and .* halo, 3"):
        seen(a)


def test_a_declared_halo_that_does_not_fit_is_refused():
    with pytest.raises((ValueError, BufferError), match="halo") as caught:
        seen(Foreign(np.zeros((3, 3, 3)), halo=((2, 2), (0, 0), (0, 0))))
    assert "field 'a'" in caught.value.__notes__[0]


# ---- Memory. ----


def with_layout(*arguments, backend=None):
    @gridbuf.stencil(backend=backend)
    def origin_of(a: Field[(np.float64, *arguments)], *, origin):
        return origin["a"]

    return origin_of


@pytest.mark.parametrize("backend", [None, "gt:cpu_kfirst", "gt:cpu_ifirst", "dace:cpu"])
def test_a_layout_that_compiled_code_relies_on_is_checked(backend):
    warnings.simplefilter("ignore", SlowFieldWarning)  # Of what else the preset wants.
    stencil = with_layout(LayoutMap[2, 0, 1], backend=backend)
    good = gridbuf.zeros((3, 4, 5), layout=(2, 0, 1))
    assert stencil(good) == (0, 0, 0)
    with pytest.raises(
        ValueError, match=r"'a', dimension .: the tuple of its strides .* map \(2, 0, 1\)"
    ):
        stencil(np.zeros((3, 4, 5)))
    with pytest.raises(ValueError, match="'a', dimension I: its stride is 16 bytes, .* 8 bytes"):
        stencil(gridbuf.zeros((6, 4, 5), layout=(2, 0, 1))[::2])
    stencil(np.zeros((1, 4, 5)))  # Extents of 1 carry no order.
    stencil(np.zeros((0, 4, 5)))


def test_the_layout_is_that_of_the_annotations_order():
    stencil = with_layout(LayoutMap[0, 1, 2], backend="gt:cpu_kfirst")
    stencil(gridbuf.zeros((5, 3, 4), dims="KIJ", layout=(2, 0, 1)))
    with pytest.raises(ValueError, match="on which the stencil relies"):
        stencil(gridbuf.zeros((5, 3, 4), dims="KIJ", layout=(0, 1, 2)))
    by_callable = with_layout(LayoutMap[lambda dims: range(len(dims))])
    by_callable(np.zeros((3, 4, 5)))


def test_an_alignment_that_compiled_code_relies_on_is_checked_at_the_origin():
    stencil = with_layout(Alignment[64], backend="gt:cpu_kfirst")
    good = gridbuf.storage.zeros((6, 6, 6), halo=(1, 1, 1), alignment_size=64)
    assert stencil(good) == (1, 1, 1)
    with pytest.raises(ValueError, match=r"'a': the address .* origin \(1, 1, 0\) is 56 bytes off"):
        stencil(good, origin=(1, 1, 0))
    unpadded = gridbuf.storage.zeros((6, 6, 6))
    with pytest.raises(ValueError, match="'a', dimension I: its stride is 288 bytes, .* of 64"):
        stencil(unpadded)


def test_default_parameters_give_what_is_not_given_explicitly():
    both = with_layout(DefaultParameters["gt:cpu_ifirst"])
    both(gridbuf.zeros((3, 4, 5), backend="gt:cpu_ifirst"))
    with pytest.raises(ValueError, match=r"layout map \(2, 1, 0\)"):
        both(np.zeros((3, 4, 5)))
    explicit = with_layout(
        DefaultParameters["gt:cpu_ifirst"], LayoutMap[0, 1, 2], Alignment[1], backend=None
    )
    explicit(np.zeros((3, 4, 5)))
    fortran = with_layout(DefaultParameters["F"])
    fortran(np.zeros((3, 4, 5), order="F"))
    with pytest.raises(ValueError, match="relies"):
        fortran(np.zeros((3, 4, 5)))


def test_numpy_computes_with_any_layout_more_slowly():
    stencil = with_layout(LayoutMap[2, 1, 0], Alignment[64], backend="numpy")
    with pytest.warns(
        SlowFieldWarning,
        match="stencil 'origin_of': field 'a', dimension .: the tuple of its strides",
    ):
        assert stencil(np.zeros((3, 4, 5))) == (0, 0, 0)


def test_memory_that_a_backend_does_not_like_is_a_warning():
    @gridbuf.stencil(backend="gt:cpu_ifirst")
    def shape(a: F64):
        return a.shape

    with pytest.warns(SlowFieldWarning, match=r"layout map \(2, 1, 0\) to be fast") as caught:
        assert shape(np.zeros((3, 4, 5))) == (3, 4, 5)
    assert caught[0].filename == __file__
    aligned_elsewhere = gridbuf.zeros((64, 4, 5), backend="gt:cpu_ifirst")
    with pytest.warns(SlowFieldWarning, match="a multiple of 64 bytes to be fast"):
        shape(aligned_elsewhere, origin=(1, 0, 0))


@pytest.mark.parametrize("backend", [n for n, p in gridbuf.presets().items() if not p["device"]])
@pytest.mark.parametrize("dims", ["IJK", "KIJ"])
def test_fields_of_a_preset_are_fast_on_it(backend, dims):
    if backend in ("C", "F") and dims != "IJK":
        pytest.skip("they go by position")

    @gridbuf.stencil(backend=backend)
    def shape(a: F64):
        return a.shape

    halo = [{"I": (1, 2), "J": (0, 3), "K": (2, 0)}[name] for name in dims]
    storage = gridbuf.storage.zeros((7, 8, 9), backend=backend, dims=dims, halo=halo)
    plain = gridbuf.zeros((7, 8, 9), backend=backend, dims=dims, aligned_index=(1, 1, 1))
    shape(storage)
    shape(plain)


def test_read_only_memory_of_a_field_that_is_written_is_an_error():
    array = np.zeros((3, 4, 5))
    array.flags.writeable = False

    @gridbuf.stencil(writes="out")
    def declared(a: F64, out: F64):
        pass

    @gridbuf.stencil
    def undeclared(a: F64):
        return a.flags.writeable

    declared(array, np.zeros((3, 4, 5)))
    with pytest.raises(ValueError, match="field 'out', all dimensions: its memory is read-only"):
        declared(array, array)
    assert undeclared(array) is False


def test_nothing_of_a_call_is_remembered():
    a = Foreign(np.zeros((3, 4, 5)))
    for _ in range(3):
        assert seen(a)[2:] == ({"a": (0, 0, 0)}, (3, 4, 5))
        a.__gt_origin__ = (1, 1, 1)
        assert seen(a)[2:] == ({"a": (1, 1, 1)}, (2, 3, 4))
        a.array = np.zeros((3, 4, 5), np.float32)  # Of the same shape.
        with pytest.raises(TypeError, match="float32"):
            seen(a)
        a.array = np.zeros((3, 4, 5))
        a.entry["dims"] = ("K", "J", "I")
        assert seen(a)[0].shape == (5, 4, 3)
        del a.entry["dims"], a.__gt_origin__


# ---- What is written. ----


@pytest.mark.parametrize(
    ("writes", "touched"), [(None, "ab"), ("b", "b"), (["a", "b"], "ab"), ((), "")]
)
def test_what_is_written_is_touched_and_nothing_else(writes, touched):
    log = []
    fields = [Foreign(np.zeros((3, 4, 5))) for _ in "ab"]
    for name, field in zip("ab", fields):
        field.entry["touch"] = lambda name=name: log.append(name)

    @gridbuf.stencil(writes=writes)
    def nothing(a: F64, b: F64):
        pass

    nothing(*fields)
    assert "".join(log) == touched


# ---- Shared memory. ----


def parts_of(whole, random):
    """A view of an array, by a random subscript."""

    def part():
        first, last = sorted(random.choice(np.arange(-1, 6), 2))
        step = int(random.choice([-2, -1, 1, 1, 2, 3]))
        return slice(*((first, last, step) if step > 0 else (last, None, step)))

    return whole[tuple(part() for _ in range(3))]


@pytest.mark.parametrize("make", [np.zeros, gridbuf.zeros, gridbuf.storage.zeros])
def test_a_field_that_is_written_shares_no_element_with_another(make):
    """Of all views of one array, those with a common element are refused, where one of them is written."""

    @gridbuf.stencil(writes="out")
    def declared(a: F64, out: F64):
        return "ran"

    @gridbuf.stencil
    def presumed(a: F64, b: F64):
        return "ran"

    @gridbuf.stencil(writes=())
    def reads(a: F64, b: F64):
        return "ran"

    random = np.random.default_rng(53)
    whole = make((5, 5, 5))
    ordinals = np.arange(125.0).reshape(5, 5, 5)
    outcomes = set()
    for _ in range(400):
        state = random.bit_generator.state
        a, b = parts_of(whole, random), parts_of(whole, random)
        random.bit_generator.state = state
        wanted = np.intersect1d(parts_of(ordinals, random), parts_of(ordinals, random)).size > 0
        outcomes.add(wanted)
        assert reads(a, b, domain=(0, 0, 0)) == "ran"
        for function, words in (
            (declared, "field 'out', all dimensions: its memory is also that of field 'a'"),
            (presumed, "field 'b', all dimensions: its memory is also that of field 'a'"),
        ):
            if wanted:
                with pytest.raises(ValueError, match=words):
                    function(a, b, domain=(0, 0, 0))
            else:
                assert function(a, b, domain=(0, 0, 0)) == "ran"
    assert outcomes == {True, False}


def test_a_stencil_can_allow_that_its_fields_share_memory():
    @gridbuf.stencil(writes="out", allow_alias=True)
    def scale(a: F64, out: F64):
        out[...] = 2 * a

    @gridbuf.stencil(writes="u")
    def scale_in_place(u: F64):
        u *= 2

    u = gridbuf.storage.ones((2, 3, 4))
    scale(u, u)
    scale_in_place(u)
    assert (np.asarray(u) == 4).all()
    strict = gridbuf.stencil(writes="out")(scale.__wrapped__)
    with pytest.raises(ValueError, match=r"allow_alias=True"):
        strict(u, u)
    with pytest.raises(ValueError, match=r"field 'out'"):
        strict(u, out=u, origin=(0, 0, 0), domain=(1, 1, 1))
    strict(u, u.copy())
    assert (np.asarray(u) == 4).all()


def test_memory_that_cannot_be_written_may_be_shared():
    @gridbuf.stencil
    def function(a: F64, b: F64):
        return "ran"

    array = np.zeros((2, 3, 4))
    array.flags.writeable = False
    assert function(array, array) == "ran"
    assert function(array, array, domain=(1, 1, 1)) == "ran"


# ---- Arguments. ----


def test_other_arguments_and_results_are_the_functions_own_affair():
    @gridbuf.stencil
    def function(x, a: F64, y=2, *more, b: F64 = None, z=3, **others):
        return x, a.shape, y, more, None if b is None else b.shape, z, others

    a, b = np.zeros((1, 2, 3)), np.zeros((3, 2, 1))
    assert function(1, a) == (1, (1, 2, 3), 2, (), None, 3, {})
    assert function(1, a, 5, a, b=b, q=7) == (1, (1, 2, 3), 5, (a,), (3, 2, 1), 3, {"q": 7})
    assert function(a=a, x=1, b=None) == (1, (1, 2, 3), 2, (), None, 3, {})
    assert str(inspect.signature(function)).endswith(
        "z=3, origin=None, domain=None, halo_check=None, **others)"
    )


@pytest.mark.parametrize(
    ("args", "keywords", "words"),
    [
        ((), {}, "missing a required argument: 'a'"),
        ((1, 2, 3, 4), {}, "too many positional arguments"),
        ((1,), {"a": 2, "b": 3}, "multiple values for argument 'a'"),
        ((1, 2), {"q": 3}, "unexpected keyword argument 'q'"),
    ],
)
def test_arguments_that_do_not_fit(args, keywords, words):
    @gridbuf.stencil
    def pair(a: F64, b: F64):
        pass

    with pytest.raises(TypeError, match=f"stencil 'pair': .*{words}"):
        pair(*args, **keywords)


def test_a_positional_only_field_and_a_keyword_of_its_name():
    @gridbuf.stencil
    def function(a: F64, /, **others):
        return others

    array = np.zeros((1, 1, 1))
    assert function(array, a=5) == {"a": 5}


def test_a_stencil_in_a_class_is_a_method():
    class Model:
        factor = 3

        @gridbuf.stencil(writes="a")
        def scale(self, a: F64):
            """Scales."""
            a *= self.factor

    array = np.ones((1, 2, 3))
    Model().scale(array)
    assert array.sum() == 18
    assert Model.scale.__doc__ == "Scales."
    assert Model.scale.__name__ == "scale"


def test_origin_and_domain_go_to_those_who_name_them():
    @gridbuf.stencil
    def only_domain(a: F64, domain):
        return domain

    assert only_domain(np.zeros((3, 4, 5)), origin=(1, 1, 1)) == (2, 3, 4)
    with pytest.raises(TypeError, match="too many positional"):
        only_domain(np.zeros((3, 4, 5)), (1, 1, 1))


def test_stencils_call_stencils():
    @gridbuf.stencil
    def outer(a: F64):
        return seen(a, domain=(1, 1, 1))

    assert outer(np.zeros((3, 4, 5)))[3] == (1, 1, 1)


# ---- Annotations. ----


def test_fields_over_any_dimensions():
    level, neighbour = gridbuf.Dim("Level", "vertical"), gridbuf.Dim("C2E", "local")
    kind = Field[np.float64, Axes["Cell", neighbour, level]]
    cells = Field[np.float64, Axes["Cell", level]]
    turned = Field[np.float64, Axes["K", "Cell"]]
    assert kind.axes == ("Cell", "C2E", "Level") and repr(kind).count("'C2E'") == 1
    assert Field[np.float64, Axes["Cell", gridbuf.Dim("tracer", "data")]].data_shape == (-1,)

    @gridbuf.stencil(writes="out")
    def mean(a: kind, out: cells, *, origin, domain):
        assert domain == (4, 3)
        (c, n, k), (co, ko) = origin["a"], origin["out"]
        assert (c, n, k, co, ko) == (0, 0, 0, 1, 0)
        out[co : co + 4, ko : ko + 3] = a[c : c + 4, :, k : k + 3].mean(axis=1)

    a = gridbuf.storage.storage(np.random.rand(3, 4, 2), dims=(level, "Cell", neighbour))
    out = gridbuf.storage.zeros((6, 3), dims=("Cell", level), halo={"Cell": (1, 1)})
    mean(a, out)
    expected = a.to_numpy().mean(axis=2).T
    np.testing.assert_array_equal(out.domain_view.to_numpy(), expected)
    with pytest.raises(ValueError, match="its dims is"):
        mean(gridbuf.storage.zeros((3, 4, 2), dims=(level, "Edge", neighbour)), out)

    def wrong(a: turned): ...

    with pytest.raises(ValueError, match="in the order horizontal, local, vertical"):
        gridbuf.stencil(wrong)


def test_arguments_of_a_field():
    kind = Field[np.float32]
    assert (kind.dtype, kind.axes, kind.data_shape) == (np.dtype("f4"), ("I", "J", "K"), ())
    assert Field[IJ, np.float32] == Field[np.float32, "IJ"] == Field[DType["f4"], Axes["I", "J"]]
    assert Field[np.float32, (3,)] == Field[DType[(np.float32, (3,))]]
    assert Field[np.float32, (3,)].axes == ("I", "J", "K", "0")
    full = Field[np.float32, IJ, LayoutMap[1, 0], Alignment[32], DefaultParameters["F"]]
    assert (full.layout, full.alignment_bytes, full.preset) == ((1, 0), 32, "F")
    assert Field[np.float32, K, LayoutMap[0]].layout == (0,)
    assert (kind | None) is kind


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Field[IJK], TypeError, "no dtype"),
        (lambda: Field[np.float64, IJ, IK], TypeError, r"got Axes\['IK'\] after Axes\['IJ'\]"),
        (lambda: Field[np.float64, "I-"], ValueError, '"-"'),
        (lambda: Field[np.float64, object()], TypeError, "not a dtype; its arguments are"),
        (lambda: Field[DType[np.float64], np.float32], TypeError, "give each argument once"),
        (lambda: Field[np.float64, (2,), Axes["I0"]], TypeError, "data dimensions twice"),
        (lambda: Axes["II"], ValueError, "I"),
        (lambda: DefaultParameters["gt:cpu_kfrist"], ValueError, "gt:cpu_kfirst"),
        (lambda: Field(), TypeError, "brackets"),
    ],
)
def test_annotations_that_mean_nothing(make, error, words):
    with pytest.raises(error, match=words):
        make()


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Field[np.float64, "JI"], r"Axes is \('J', 'I'\), but must be in the order horizontal"),
        (Field[np.float64, LayoutMap[0, 1]], "layout"),
        (Field[np.float64, LayoutMap[0, 1, 1]], "layout"),
        (Field[np.float64, Alignment[0]], "Alignment is 0, but must be from 1 to 1048576 bytes"),
        (Field[np.float64, Alignment[2**21]], "Alignment is 2097152"),
    ],
)
def test_fields_that_cannot_be_are_refused_where_they_are_declared(kind, words):
    def function(a: kind):
        pass

    with pytest.raises(ValueError, match=words):
        gridbuf.stencil(function)


def test_objects_as_elements_are_refused():
    def function(a: Field[object]):
        pass

    with pytest.raises(TypeError, match="object"):
        gridbuf.stencil(function)


def test_annotated_and_quoted_annotations():
    @gridbuf.stencil
    def function(
        a: Annotated[np.ndarray, Field[np.float64, IJ]], b: "Field[np.float64, K]", n: int
    ):
        return a.ndim, b.ndim, n

    assert function(np.zeros((2, 2)), np.zeros(3), 4) == (2, 1, 4)

    def unknown(a: "Nowhere"):  # noqa: F821
        pass

    with pytest.raises(TypeError, match="annotation of stencil 'unknown' .* 'Nowhere'"):
        gridbuf.stencil(unknown)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"backend": "gt:cpu_kfrist"}, ValueError, "gt:cpu_kfirst"),
        ({"writes": "q"}, ValueError, "names 'q', but its fields are 'a'"),
        ({"on_wrong_device": "ignore"}, ValueError, '\'ignore\', but must be "copy" or "raise"'),
    ],
)
def test_options_that_cannot_be(options, error, words):
    def function(a: F64):
        pass

    with pytest.raises(error, match=words):
        gridbuf.stencil(function, **options)


def test_what_is_no_stencil():
    async def coroutine(a: F64):
        pass

    def generator(a: F64):
        yield a

    def without_fields(a):
        pass

    def many(*a: F64):
        pass

    def named_origin(a: F64, origin: F64):
        pass

    def with_default(a: F64 = np.zeros((1, 1, 1))):  # noqa: B008
        pass

    for function, words in [
        (coroutine, "coroutine"),
        (generator, "generator"),
        (without_fields, "no parameter of stencil 'without_fields'"),
        (many, "any number"),
        (named_origin, "rename it"),
        (with_default, "default"),
        (5, "cannot be called"),
    ]:
        with pytest.raises(TypeError, match=words):
            gridbuf.stencil(function)


# ---- Devices. ----


@pytest.fixture
def device():
    with gridbuf.testing.emulated_device():
        yield


def gpu_stencil(**options):
    @gridbuf.stencil(backend="gt:gpu", writes="out", **options)
    def doubled(a: F64, out: F64, fail: bool = False, *, origin, domain):
        out[...] = 2 * a
        if fail:
            raise RuntimeError("after the write")
        return origin, domain

    return doubled


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("managed", [None, "gt4py", "cuda"])
def test_device_storages_are_computed_with_where_they_are(managed):
    make = {"backend": "gt:gpu", "managed": managed, "dims": "KIJ", "halo": (0, 1, 2)}
    a = gridbuf.storage.full((3, 4, 5), 2.0, **make)
    out = gridbuf.storage.zeros((3, 4, 5), **make)
    assert gpu_stencil()(a, out) == ({"a": (1, 2, 0), "out": (1, 2, 0)}, (2, 1, 3))
    if managed == "gt4py":
        assert out.sync_state.state == gridbuf.storage.SyncState.SYNC_DEVICE_DIRTY
    assert float(out[2, 3, 4]) == 4.0


@pytest.mark.usefixtures("device")
def test_fields_of_the_host_are_copied_there_and_back_with_one_warning():
    a = gridbuf.storage.full((3, 4, 5), 2.0, dims="JKI")
    out = np.zeros((5, 3, 4))
    before = a.to_numpy().copy()
    with pytest.warns(ExpensiveCopyWarning, match="'doubled' .* of field 'a', 'out': ") as caught:
        gpu_stencil()(a, out)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert (out == 4.0).all()
    assert (a.to_numpy() == before).all()


@pytest.mark.usefixtures("device")
def test_python_shows_the_warning_once_per_call_site():
    stencil = gpu_stencil()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            stencil(np.zeros((3, 4, 5)), np.zeros((3, 4, 5)))
        stencil(np.zeros((3, 4, 5)), np.zeros((3, 4, 5)))
    assert len(caught) == 2


@pytest.mark.usefixtures("device")
def test_fields_of_the_device_are_copied_to_a_stencil_of_the_host():
    @gridbuf.stencil(writes="out")
    def doubled(a: F64, out: F64):
        out[...] = 2 * a

    a = gridbuf.storage.full((3, 4, 5), 2.0, device="gpu", managed=None)
    out = gridbuf.storage.zeros((3, 4, 5), device="gpu", managed=None)
    buffer = gridbuf.allocate((3, 4, 5), memory="device")
    with pytest.warns(
        ExpensiveCopyWarning, match="only the device has the memory of field 'a', 'out'"
    ):
        doubled(a, out)
    with pytest.warns(ExpensiveCopyWarning):
        doubled(a, buffer)
    assert (gridbuf.storage.storage(out, device=None).to_numpy() == 4.0).all()
    assert (buffer.copy(memory="host").to_numpy() == 4.0).all()


@pytest.mark.usefixtures("device")
def test_after_an_exception_nothing_is_copied_back():
    out = np.zeros((3, 4, 5))
    with pytest.warns(ExpensiveCopyWarning), pytest.raises(RuntimeError, match="after the write"):
        gpu_stencil()(np.ones((3, 4, 5)), out, True)
    assert (out == 0.0).all()


@pytest.mark.usefixtures("device")
def test_a_wrong_device_can_be_an_error():
    strict = gpu_stencil(on_wrong_device="raise")
    on_device = gridbuf.storage.zeros((3, 4, 5), backend="gt:gpu")
    with pytest.raises(
        gridbuf.GTNoSuchBufferError,
        match="field 'out', all dimensions: its memory is on the host only, .* on the device",
    ):
        strict(on_device, np.zeros((3, 4, 5)))
    strict(on_device, on_device.copy())


@pytest.mark.usefixtures("device")
def test_a_warning_that_is_an_error_releases_and_copies_nothing():
    log = []
    a = Foreign(np.zeros((3, 4, 5)))
    a.entry["release"] = lambda: log.append("release")
    a.entry["touch"] = lambda: log.append("touch")
    with pytest.raises(ExpensiveCopyWarning):
        gpu_stencil()(a, np.zeros((3, 4, 5)))
    assert log == ["release"]


@pytest.mark.usefixtures("device")
def test_copies_lie_as_the_stencil_relies_on_it():
    @gridbuf.stencil(backend="gt:gpu", writes=())
    def where(a: Field[np.float64, LayoutMap[1, 2, 0], Alignment[256]], *, origin):
        corner = a[tuple(slice(at, None) for at in origin["a"])]
        return a.strides, corner.ctypes.data % 256

    with pytest.warns(ExpensiveCopyWarning):
        strides, rest = where(np.zeros((6, 7, 8)), origin=(1, 2, 3))
    assert rest == 0
    assert strides == (256, 8, 6 * 256)


def test_without_a_device_a_stencil_of_the_device_says_so():
    if gridbuf.testing.is_emulated():
        pytest.skip("the emulated device is switched on for all tests")
    log = []
    a = Foreign(np.zeros((3, 4, 5)))
    a.entry["acquire"] = lambda: log.append("acquire")
    try:
        gridbuf.storage.zeros((1,), device="gpu")
    except gridbuf.DeviceUnavailableError:
        pass
    else:
        pytest.skip("there is a device")
    with pytest.raises(gridbuf.DeviceUnavailableError):
        gpu_stencil()(a, a)
    assert log == []
