"""Plans: what they hold, what they refuse, and the content and the views that follow from them."""

from __future__ import annotations

import itertools
import json
import struct
import sys
from importlib.resources import files

import pytest
from jsonschema import Draft202012Validator

from gridbuf_conformance.plan import KEYS, UNTOUCHED_FROM_BYTES, Plan
from gridbuf_conformance.plan.dtypes import DTYPES, fill_bytes
from gridbuf_conformance.plan.views import OPERATIONS, ViewMap
from hypothesis import given, settings
from hypothesis import strategies as st

SCHEMA = json.loads(files("gridbuf_conformance.plan").joinpath("plan.schema.json").read_text())


def test_the_default_is_the_simplest_plan():
    plan = Plan()
    assert dict(plan) == {
        "shape": (1,),
        "dtype": "float64",
        "byteorder": "native",
        "layout": None,
        "alignment_size": 1,
        "aligned_index": None,
        "dims": None,
        "halo": None,
        "device": None,
        "readonly": False,
        "views": (),
        "fill": 0,
    }


def test_a_plan_is_a_read_only_hashable_mapping():
    plan = Plan(shape=[3, 4])
    assert plan["shape"] == (3, 4) == plan.shape
    assert plan == Plan(shape=(3, 4)) and len({plan, Plan(shape=(3, 4))}) == 1
    with pytest.raises(TypeError):
        plan["shape"] = (1,)
    with pytest.raises(AttributeError):
        plan.shape = (1,)
    with pytest.raises(KeyError, match="the keys are shape"):
        plan["size"]


def test_json_is_canonical_and_comes_back():
    plan = Plan(
        shape=(4, 3, 5), layout=(2, 0, 1), halo=((1, 1), (0, 0), (2, 0)), views=(("reverse", 0),)
    )
    assert Plan.from_json(plan.to_json()) == plan
    assert Plan.from_json(plan.to_json(brief=True)) == plan
    assert Plan.from_json(plan.to_dict()) == plan
    assert list(json.loads(plan.to_json())) == list(KEYS)
    assert plan.to_json(brief=True) == (
        '{"shape":[4,3,5],"layout":[2,0,1],"halo":[[1,1],[0,0],[2,0]],"views":[["reverse",0]]}'
    )


@pytest.mark.parametrize(
    "text, words",
    [
        ("{", "not JSON"),
        ("[1]", "JSON object, not list"),
        ('{"size": 3}', "unknown plan key 'size'"),
        ('{"shape": [2.0]}', "'shape'"),
    ],
)
def test_text_that_is_no_plan_is_refused(text, words):
    with pytest.raises(ValueError, match=words):
        Plan.from_json(text)


BAD = [
    ("shape", {"shape": (-1,)}),
    ("shape", {"shape": (True,)}),
    ("shape", {"shape": "3"}),
    ("shape", {"shape": (1,) * 65}),
    ("shape", {"shape": (2**41,), "dtype": "int8", "fill": None}),
    ("dtype", {"dtype": "f8"}),
    ("byteorder", {"byteorder": "<"}),
    ("byteorder", {"byteorder": "swapped", "dtype": "int8"}),
    ("layout", {"shape": (2, 2), "layout": (0, 0)}),
    ("layout", {"shape": (2, 2), "layout": (0,)}),
    ("layout", {"shape": (2, 2), "layout": (0, 2)}),
    ("alignment_size", {"alignment_size": 0}),
    ("alignment_size", {"alignment_size": 2**20 + 1}),
    ("alignment_size", {"alignment_size": 8.0}),
    ("aligned_index", {"shape": (3,), "aligned_index": (3,)}),
    ("aligned_index", {"shape": (3,), "aligned_index": (0, 0)}),
    ("aligned_index", {"shape": (0,), "aligned_index": (1,)}),
    ("dims", {"shape": (2, 2), "dims": ("I", "I")}),
    ("dims", {"shape": (2,), "dims": ("two words",)}),
    ("dims", {"shape": (2,), "dims": ("",)}),
    ("dims", {"shape": (2,), "dims": ("2D",)}),
    ("dims", {"shape": (2,), "dims": ("n" * 64,)}),
    ("dims", {"shape": (2,), "dims": ("hauteur_e\u0301tage",)}),
    ("dims", {"shape": (2,), "dims": (0,)}),
    ("dims", {"shape": (2,), "dims": ("٣",)}),
    ("dims", {"shape": (2,), "dims": ("01",)}),
    ("dims", {"shape": (2,), "dims": ("-1",)}),
    ("dims", {"shape": (2, 2), "dims": ("I",)}),
    ("halo", {"shape": (8,), "halo": ((5, 5),)}),
    ("halo", {"shape": (8,), "halo": ((-1, 0),)}),
    ("halo", {"shape": (8,), "halo": (1,)}),
    ("device", {"device": "cpu"}),
    ("readonly", {"readonly": 1}),
    ("fill", {"fill": -1}),
    ("fill", {"fill": 2**32}),
    ("fill", {"shape": (UNTOUCHED_FROM_BYTES,), "dtype": "int8", "fill": 0}),
    ("views", {"views": "reverse"}),
]


NAMES = ["I", "Cell", "E2V", "_half_levels", "étage", "高度", "n" * 63, "0", "10", "class"]


@pytest.mark.parametrize("name", NAMES)
def test_any_identifier_and_any_decimal_number_is_a_name(name):
    plan = Plan(shape=(2, 3), dims=(name, "K"))
    assert Plan.from_json(plan.to_json()) == plan
    assert Draft202012Validator(SCHEMA).is_valid(plan.to_dict())


@pytest.mark.parametrize("name", ["two words", "", "2D", "n" * 64, "a-b", "01", "-1"])
def test_the_schema_refuses_other_names(name):
    text = Plan(shape=(2,)).to_dict() | {"dims": [name]}
    assert not Draft202012Validator(SCHEMA).is_valid(text)


@pytest.mark.parametrize("key, changes", BAD)
def test_values_out_of_bounds_are_refused_by_key(key, changes):
    with pytest.raises(ValueError, match=f"plan key '{key}'.*must be"):
        Plan(**changes)


@pytest.mark.parametrize(
    "operation",
    [
        ("flip", 0),
        ("reverse",),
        ("reverse", 2),
        ("reverse", -1),
        ("slice", 0, 0, 1),
        ("slice", 0, 0, 1, 0),
        ("slice", 0, 0, 1, None),
        ("transpose", 1, 0),
        ("transpose", (0, 0)),
        ("newaxis", 3),
        ("broadcast", 0, 5),
        ("broadcast", 1, -1),
        "reverse",
    ],
)
def test_operations_that_do_not_fit_are_refused(operation):
    with pytest.raises(ValueError, match="view operation"):
        Plan(shape=(3, 1), views=(operation,))


@pytest.mark.parametrize(
    "given_keys, expected",
    [
        ({"aligned_index": (1, 2)}, (1, 2)),
        ({}, (0, 0)),
        ({"halo": ((2, 0), (0, 1))}, (2, 0)),
        ({"halo": ((3, 0), (1, 1))}, (2, 1)),
    ],
)
def test_the_aligned_element_defaults_to_the_lower_halos(given_keys, expected):
    assert Plan(shape=(3, 4), **given_keys).aligned_element == expected


# -- content ---------------------------------------------------------------------------


def reference_content(plan: Plan) -> bytes:
    """The formula of `dtypes`, followed byte by byte as its text says."""
    table, x = [], 1
    for _ in range(4093):
        table.append(1 + x % 123)
        x = 16807 * x % (2**31 - 1)
    size = plan.itemsize
    raw = [
        table[(769 * plan.fill + position) % 4093] for position in range(plan.element_count * size)
    ]
    return bytes(raw)


@pytest.mark.parametrize("name", ["int8", "uint16", "float32", "float64", "complex128", "bfloat16"])
def test_content_follows_the_published_formula(name):
    plan = Plan(shape=(40, 17), dtype=name, fill=12345)
    assert plan.content() == reference_content(plan)


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("byteorder", ["native", "swapped"])
def test_content_is_its_elements_in_row_major_order(name, byteorder):
    if byteorder == "swapped" and not DTYPES[name].has_byteorder:
        with pytest.raises(ValueError, match="byteorder"):
            Plan(dtype=name, byteorder=byteorder)
        return
    plan = Plan(shape=(2, 3, 4), dtype=name, byteorder=byteorder, fill=7)
    elements = [plan.element_bytes(index) for index in itertools.product(*map(range, plan.shape))]
    assert b"".join(elements) == plan.content()
    assert {len(element) for element in elements} == {plan.itemsize}


def test_swapping_reverses_the_bytes_of_each_number():
    native = Plan(dtype="complex64", fill=3).content()
    swapped = Plan(dtype="complex64", byteorder="swapped", fill=3).content()
    assert struct.unpack("=ff", native) == struct.unpack(
        ">ff" if sys.byteorder == "little" else "<ff", swapped
    )
    record = Plan(dtype="struct", fill=3)
    fields = struct.unpack("=bdhh", record.content())
    other = ">" if sys.byteorder == "little" else "<"
    assert struct.unpack(other + "bdhh", record.replaced(byteorder="swapped").content()) == fields


def test_content_is_valid_for_its_type():
    assert set(Plan(shape=(200,), dtype="bool").content()) == {0, 1}
    text = (
        Plan(shape=(50,), dtype="str3")
        .content()
        .decode("utf-32-le" if sys.byteorder == "little" else "utf-32-be")
    )
    assert len(text) == 150 and all(1 <= ord(letter) <= 123 for letter in text)
    for code, name in (("e", "float16"), ("f", "float32"), ("d", "float64")):
        content = Plan(shape=(500,), dtype=name).content()
        values = [value for (value,) in struct.iter_unpack("=" + code, content)]
        assert all(abs(value) < float("inf") for value in values) and len(set(values)) > 400


def test_no_permutation_of_a_small_array_has_the_same_content():
    for shape in [(3, 4, 5), (16, 16), (7, 113), (64, 64)]:
        content = Plan(shape=shape, dtype="int16").content()
        elements = [content[i : i + 2] for i in range(0, len(content), 2)]
        rows, columns = shape[0], len(elements) // shape[0]
        transposed = [elements[r * columns + c] for c in range(columns) for r in range(rows)]
        assert transposed != elements


def test_a_plan_without_fill_has_no_content():
    with pytest.raises(ValueError, match="fill is None"):
        Plan(fill=None).content()


def test_fill_bytes_of_a_run_are_those_of_its_elements():
    run = fill_bytes(9, 1000, 6, 1500)
    assert run == b"".join(bytes(fill_bytes(9, i, 6)) for i in range(1000, 2500))


# -- views -----------------------------------------------------------------------------


def nested(shape, flat=0):
    """A nested list of row-major indices: views in plain Python to compare with."""
    if not shape:
        return flat
    inner = 1
    for extent in shape[1:]:
        inner *= extent
    return [nested(shape[1:], flat + i * inner) for i in range(shape[0])]


operations_on_a_matrix = st.one_of(
    st.tuples(
        st.just("slice"),
        st.integers(0, 1),
        st.integers(-6, 6),
        st.none() | st.integers(-6, 6),
        st.sampled_from((1, 2, -1, -3)),
    ),
    st.tuples(st.just("reverse"), st.integers(0, 1)),
    st.just(("transpose", (1, 0))),
)


@settings(deadline=None)
@given(st.lists(operations_on_a_matrix, max_size=4))
def test_a_view_map_finds_the_element_that_python_finds(operations):
    shape = (5, 4)
    view = ViewMap.of(shape, operations)
    rows = nested(shape)
    for name, *arguments in operations:
        if name == "transpose":
            rows = [list(column) for column in zip(*rows)]
        else:
            axis, *bounds = arguments
            cut = slice(*bounds) if bounds else slice(None, None, -1)
            rows = rows[cut] if axis == 0 else [row[cut] for row in rows]
    for i, row in enumerate(rows):
        for j, flat in enumerate(row):
            assert view.base_index((i, j)) == divmod(flat, 4)
    if rows:
        assert view.shape == (len(rows), len(rows[0]))


def test_new_and_broadcast_axes_do_not_move():
    view = ViewMap.of((3,), [("newaxis", 0), ("broadcast", 0, 4), ("reverse", 1)])
    assert (view.shape, view.axes, view.steps, view.start) == ((4, 3), (None, 0), (0, -1), (2,))
    assert view.strides((8,)) == (0, -8) and view.offset((8,)) == 16
    assert view.base_index((3, 1)) == (1,)


def test_viewed_element_bytes_are_those_of_the_base_element():
    plan = Plan(shape=(3, 4), views=(("transpose", (1, 0)), ("reverse", 0)))
    assert plan.view_map.shape == (4, 3)
    assert plan.viewed_element_bytes((0, 2)) == plan.element_bytes((2, 3))
    assert plan.without_views == Plan(shape=(3, 4))


# -- the schema ------------------------------------------------------------------------


def test_the_schema_says_what_the_plan_says():
    properties = SCHEMA["properties"]
    assert list(properties) == list(KEYS)
    assert {key: item["default"] for key, item in properties.items()} == Plan().to_dict()
    assert properties["dtype"]["enum"] == list(DTYPES)
    named = [
        variant["prefixItems"][0]["const"] for variant in properties["views"]["items"]["oneOf"]
    ]
    assert named == list(OPERATIONS)


@pytest.mark.parametrize(
    "key, changes",
    [
        (key, changes)
        for key, changes in BAD
        # For JSON Schema 8.0 is an integer.
        if key in ("dtype", "alignment_size", "device", "readonly") and changes.get(key) != 8.0
    ],
)
def test_the_schema_refuses_what_one_key_can_show(key, changes):
    text = json.loads(json.dumps(Plan().to_dict() | changes))
    assert any(key in error.path for error in Draft202012Validator(SCHEMA).iter_errors(text))
