"""The scoreboard finds each wrong partner in its cell, and nowhere else; records, exit codes,
scripts, the page.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import command_line
import pytest

from gridbuf_conformance import findings
from gridbuf_conformance.plugins.libraries.numpy import NumPyProducer
from gridbuf_conformance.plugins.scoreboard import (
    ARRAYS,
    OUTCOMES,
    Selection,
    differences,
    load,
    page,
    run,
    save,
    score,
    scripts,
    standalone,
)
from gridbuf_conformance.plugins.scoreboard.records import HARM, Cell, Record, RecordError

pytest.importorskip("numpy")
PARTNERS = str(Path(__file__).with_name("interop_partners.py"))
CONSUMERS = (
    "right", "doubles", "swaps_axes", "narrows", "forgets_byte_order", "drops_axes", "panics",
    "widens", "forgets_read_only", "keeps_no_owner", "caches", "dies", "hangs", "refuses_bool",
    "copies", "shows_nothing", "logical_bytes", "memory_bytes", "fortran_bytes",
    "computes_in_memory_order", "computes_on_the_first_page", "locks", "is_immutable",
    "joins_bytes", "needs_format",
)  # fmt: skip
PRODUCERS = ("SwapsStrides", "ForgetsOffset", "LiesOfWriting", "FreesEarly")


@pytest.fixture(scope="module")
def record() -> Record:
    selection = Selection(
        against=("numpy",),
        producers=tuple(f"{PARTNERS}:{name}" for name in PRODUCERS),
        consumers=tuple(f"{PARTNERS}:{name}" for name in CONSUMERS),
    )
    return run(selection, time_limit_s=3)


def cell_of(record: Record, producer: str, consumer: str) -> Cell:
    (cell,) = (
        c for c in record.cells if c.key[0].endswith(producer) and c.key[1].endswith(consumer)
    )
    return cell


def harm_in(cell: Cell) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for array in ARRAYS:
        outcome = cell.outcome(array)
        if OUTCOMES[outcome][0] in HARM:
            found.setdefault(outcome, []).append(array)
    return found


def with_(test) -> list[str]:
    """The arrays of NumPy for which `test(array)` holds."""
    absent = ("bfloat16", "float8_e4m3fn", "float8_e5m2")
    return [name for name, array in ARRAYS.items() if name not in absent and test(array)]


def shape_of(array) -> tuple[int, ...]:
    return array.plan.view_map.shape


def size_of(array) -> int:
    count = 1
    for extent in shape_of(array):
        count *= extent
    return count


def is_doubled(array) -> bool:
    kind = array.plan.dtype_info.kind
    return kind in "iufc" and size_of(array) > 0 and array.plan.dtype != "struct"


def has_other_axes(array) -> bool:
    shape = shape_of(array)
    return len(shape) > 1 and shape != (1, 1) and (size_of(array) > 0 or shape != shape[::-1])


def is_narrowed(array) -> bool:
    plan = array.plan
    return plan.dtype == "float64" and plan.byteorder == "native" and size_of(array) > 0


def has_other_order(array) -> bool:
    shape = shape_of(array)
    is_c_order = array.plan.layout == tuple(range(len(shape)))[::-1]
    return sum(extent > 1 for extent in shape) > 1 and size_of(array) > 0 and not is_c_order


def is_computed(array) -> bool:
    return array.plan.dtype_info.kind in "biufc" and array.plan.dtype != "struct"


def is_large_in_rows(array) -> bool:
    return array.feature == "large" and not is_permuted(array)


def is_permuted(array) -> bool:
    """Whether NumPy's order of memory is not the order of rows."""
    view = NumPyProducer().make(array.plan)
    for operation in array.plan.views:
        view = NumPyProducer().apply_view(view, operation)
    return view.ravel("K").tolist() != view.ravel().tolist()


def is_permuted_number(array) -> bool:
    return is_computed(array) and is_permuted(array)


EXPECTED = {
    "right": {},
    "copies": {},
    "refuses_bool": {},
    "shows_nothing": {},
    "doubles": {"wrong values": with_(is_doubled)},
    "swaps_axes": {"wrong values": with_(has_other_axes)},
    "widens": {},
    "narrows": {},
    "forgets_byte_order": {"wrong values": ["swapped float64", "swapped int16"]},
    "drops_axes": {},
    "panics": {},
    "forgets_read_only": {"read-only lost": with_(lambda a: a.plan.readonly and size_of(a))},
    "dies": {"crash": with_(lambda a: len(shape_of(a)) == 4)},
    "logical_bytes": {},
    "memory_bytes": {},
    "fortran_bytes": {"wrong values": with_(has_other_order)},
    "hangs": {"hang": with_(lambda a: len(shape_of(a)) == 5)},
    "computes_in_memory_order": {"wrong values": with_(is_permuted_number)},
    "computes_on_the_first_page": {"wrong values": with_(is_large_in_rows)},
    "locks": {},
    "is_immutable": {},
    "joins_bytes": {},
    "needs_format": {},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_each_wrong_consumer_is_found_in_its_cell(record, name):
    assert harm_in(cell_of(record, "numpy", f":{name}")) == EXPECTED[name]


def arrays_of(cell: Cell, outcome: str) -> list[str]:
    return [name for name in ARRAYS if cell.outcome(name) == outcome]


def test_rounded_values_and_joined_bytes_are_conversions(record):
    narrowed = cell_of(record, "numpy", ":narrows")
    assert arrays_of(narrowed, "converted") == with_(is_narrowed)
    assert {narrowed.message(name) for name in with_(is_narrowed)} == {"float64 as float32"}
    joined = cell_of(record, "numpy", ":joins_bytes")
    assert arrays_of(joined, "converted") == ["uint8", "uint8 reversed", "read-only bytes"]
    assert joined.message("read-only bytes") == "uint8 as bytes16"


def test_shared_memory_that_lost_its_writability_is_found(record):
    locked = cell_of(record, "numpy", ":locks")
    assert arrays_of(locked, "became read-only") == with_(is_locked)
    assert not arrays_of(cell_of(record, "numpy", ":is_immutable"), "became read-only")


def is_locked(array) -> bool:
    """NumPy's broadcast arrays are read-only, and `x + 0` of no dimension is a scalar."""
    is_writable = not array.plan.readonly and array.feature != "zero strides"
    return is_writable and is_computed(array) and bool(shape_of(array)) and size_of(array) > 0


def test_a_result_is_read_as_memoryview_does(record):
    """A request without a format would end the process."""
    cell = cell_of(record, "numpy", ":needs_format")
    assert not cell.outcomes.count("!") and cell.outcome("float64") == "shared"


def test_memory_without_owner_and_cached_values_are_found(record):
    lost = harm_in(cell_of(record, "numpy", ":keeps_no_owner"))
    assert (
        set(lost) <= {"lifetime broken", "read-only lost", "crash"}
        and len(lost["lifetime broken"]) > 20
    )
    stale = harm_in(cell_of(record, "numpy", ":caches"))
    assert set(stale) == {"aliasing lost"} and "float64" in stale["aliasing lost"]


def test_refusals_copies_and_unread_results_are_told_apart(record):
    refused = cell_of(record, "numpy", ":refuses_bool")
    assert (
        refused.outcome("bool") == "refused"
        and refused.message("bool") == "TypeError: no bool here"
    )
    assert refused.outcomes.count("r") == 1 and refused.outcome("float64") == "shared"
    assert set(cell_of(record, "numpy", ":copies").outcomes) == set("ca-")
    assert set(cell_of(record, "numpy", ":shows_nothing").outcomes) == set("?-")
    panics = cell_of(record, "numpy", ":panics")
    assert set(panics.outcomes) == set("r-") and panics.message("bool") == "Panic: no array at all"
    dropped = cell_of(record, "numpy", ":drops_axes")
    assert [name for name in ARRAYS if dropped.outcome(name) == "other rank"] == with_(
        lambda a: 1 in shape_of(a) and shape_of(a) != ()
    )


def test_results_without_tolist_are_read_through_their_interface(record):
    """The address in it is of a temporary object, as Pillow's is, and the type is another one."""
    widened = cell_of(record, "numpy", ":widens")
    assert widened.outcome("int16") == widened.outcome("bool") == "copied"
    assert widened.outcome("float64") == "refused"


def test_wrong_producers_are_found_by_values_that_neither_exchange_shows(record):
    """Their export and what NumPy takes agree: only the third party differs."""
    swapped = harm_in(cell_of(record, ":SwapsStrides", "numpy.asarray"))
    assert swapped == {"wrong values": ["rank 2", "read-only int32", "rank 2 float32"]}
    offset = harm_in(cell_of(record, ":ForgetsOffset", "numpy.asarray"))
    assert {"offset 1", "offset 3", "read-only offset"} <= set(offset["wrong values"])
    assert not {"float64", "order 10", "steps 1"} & set(offset["wrong values"])
    told = harm_in(cell_of(record, ":LiesOfWriting", "numpy.asarray"))
    assert told == EXPECTED["forgets_read_only"]
    early = harm_in(cell_of(record, ":FreesEarly", "numpy.asarray"))
    assert [array for arrays in early.values() for array in arrays] == ["int16"]
    assert set(early) <= {"lifetime broken", "wrong values"}


def test_two_runs_give_the_same_record(record, tmp_path):
    selection = Selection(against=("numpy",), consumers=(f"{PARTNERS}:right", f"{PARTNERS}:dies"))
    again = run(selection, time_limit_s=3)
    assert len(again.cells) == 6
    assert [line for line in differences(record, again) if "no longer" not in line] == []


# -- the score -----------------------------------------------------------------------------------

NAMES = [*ARRAYS]


def letters(**counts: int) -> str:
    """Outcomes in a row: `letters(s=2, W=1)` is "ssW---…"."""
    text = "".join(letter * count for letter, count in counts.items())
    return text.replace("x", "!") + "-" * (len(ARRAYS) - len(text))


def cells_of(*rows: tuple[str, str, str]) -> Record:
    """A record of libraries: one to two by "one.pass" and "two.take", with these outcomes."""
    made = [Cell(f"{s}.pass", f"{t}.take", s, t, outcomes) for s, t, outcomes in rows]
    return Record("3.11", "linux", cells=made)


def known(monkeypatch, documented: dict[str, list[str]], *causes: dict) -> None:
    """Libraries with the arrays that they make and take, and causes."""
    sides = {n: {"by": ["dlpack"], "arrays": arrays} for n, arrays in documented.items()}
    rows = {n: {"document": "https://x", "makes": s, "takes": s} for n, s in sides.items()}
    tables = {"documented": rows, "causes": list(causes)}
    monkeypatch.setattr(findings, "scoreboard", lambda: tables)
    score.causes.cache_clear()
    score._cause.cache_clear()


@pytest.fixture(autouse=True)
def forget_causes():
    yield
    score.causes.cache_clear()
    score._cause.cache_clear()


def test_documented_arrays_count_whatever_a_run_shows(monkeypatch):
    known(monkeypatch, {"one": NAMES[:20], "two": NAMES[:10]})
    pair = score.pairs(cells_of(("one", "two", letters(s=4, W=4, r=4))))["one", "two"]
    assert pair.counted == {*NAMES[:10]} and pair.harmed == {*NAMES[4:8]}
    assert (pair.right, pair.share) == (4, 0.4)


def test_a_library_that_harms_an_array_from_everybody_loses_it(monkeypatch):
    """It does not describe the array less for that."""
    rows = [(name, "two", letters(s=5, W=1)) for name in ("one", "three", "four")]
    for documented in ({}, {name: NAMES[:5] for name in ("one", "two", "three", "four")}):
        known(monkeypatch, documented)
        takes = score.scores(score.pairs(cells_of(*rows)))["two"][1]
        assert (takes.lost, takes.counted, takes.rate) == (3, 18, 1 - 3 / 18)


def test_arrays_that_are_not_documented_do_not_count(monkeypatch):
    known(monkeypatch, {"one": NAMES[:8], "two": NAMES[:10]})
    pair = score.pairs(cells_of(("one", "two", letters(s=10, r=10))))["one", "two"]
    assert pair.counted == {*NAMES[:8]} and not pair.losses
    known(monkeypatch, {"one": [], "two": NAMES})
    pair = score.pairs(cells_of(("one", "two", letters(s=10, r=10))))["one", "two"]
    assert pair.share is None and not pair.is_scored


def test_libraries_without_a_common_interface_are_not_compared(monkeypatch):
    known(monkeypatch, {"one": NAMES, "two": NAMES})
    findings.scoreboard()["documented"]["two"]["takes"] = {"by": ["buffer"], "arrays": NAMES}
    pair = score.pairs(cells_of(("one", "two", letters(r=10))))["one", "two"]
    assert pair.share is None and not pair.losses


def test_harm_counts_against_the_library_of_its_cause_and_a_refusal_against_both(monkeypatch):
    cause = {
        "id": "two-dies", "title": "it dies", "libraries": ["two"], "cells": ["* two.take crash"]
    }  # fmt: skip
    known(monkeypatch, {"one": NAMES[:9], "two": NAMES[:9]}, cause)
    record = cells_of(("one", "two", letters(s=5, x=3, r=1)))
    passes, takes = (
        score.scores(score.pairs(record))[name][side] for name, side in (("one", 0), ("two", 1))
    )
    assert (passes.lost, takes.lost) == (1, 4)
    assert [(c.id, lost) for c, _, lost in takes.by_cause()] == [("two-dies", 3), ("refused", 1)]
    (row,) = page.Board(record, "r0").causes
    assert row[0].id == "two-dies" and row[2] == 3, "one cause, three arrays"
    known(monkeypatch, {"one": NAMES[:9], "two": NAMES[:9]})
    assert score.scores(score.pairs(record))["one"][0].lost == 4, "without a cause, both lose"


def test_a_documented_conversion_loses_half_and_another_one_is_harm(monkeypatch):
    record = cells_of(("one", "two", letters(s=6, v=4)))
    cause = {
        "id": "narrow", "title": "float64 becomes float32", "libraries": ["two"],
        "link": "https://docs", "cells": ["* two.take converted"],
    }  # fmt: skip
    known(monkeypatch, {"one": NAMES[:10], "two": NAMES[:10]}, cause)
    pair = score.pairs(record)["one", "two"]
    assert (pair.right, pair.harmed) == (8, frozenset())
    known(monkeypatch, {"one": NAMES[:10], "two": NAMES[:10]})
    pair = score.pairs(record)["one", "two"]
    assert (pair.right, len(pair.harmed)) == (6, 4)


def test_lost_writability_loses_half_of_an_array_and_is_not_harm(monkeypatch):
    known(monkeypatch, {"one": NAMES[:10], "two": NAMES[:10]})
    found = score.pairs(cells_of(("one", "two", letters(s=6, k=4))))
    pair = found["one", "two"]
    assert (pair.right, pair.harmed) == (8, frozenset())
    one, two = (score.scores(found)[name] for name in ("one", "two"))
    assert (one[0].lost, two[1].lost) == (2, 2)


def test_a_rate_needs_three_partners(monkeypatch):
    known(monkeypatch, {name: NAMES[:5] for name in ("one", "two", "three", "four")})
    rows = [("one", name, letters(s=5)) for name in ("two", "three", "four")]
    few = score.scores(score.pairs(cells_of(*rows[:2])))["one"][0]
    assert (few.rate, few.lost, few.counted) == (None, 0, 10)
    assert score.scores(score.pairs(cells_of(*rows)))["one"][0].rate == 1
    own = score.scores(score.pairs(cells_of(*rows[:2], ("one", "one", letters(s=5)))))["one"][0]
    assert own.rate is None, "the library itself is not a partner"


def test_harm_by_plain_bytes_is_counted(monkeypatch):
    known(monkeypatch, {"one": NAMES[:5], "two": NAMES[:5]})
    record = cells_of(("one", "two", letters(s=3, x=2)))
    record.cells[0].flat = True
    pair = score.pairs(record)["one", "two"]
    assert pair.share is None and len(pair.counted) == len(pair.harmed) == 2


# -- the command ---------------------------------------------------------------------------------


def command(*arguments: str, folder: Path) -> subprocess.CompletedProcess:
    return command_line.run("interop", *arguments, cwd=folder)


def test_exit_codes_of_a_gate(tmp_path):
    (tmp_path / "mylib.py").write_text("import array\n\n\ndef take(x):\n    return memoryview(x)\n")
    mine = ("--consumer", "mylib.py:take", "--against", "python")
    first = command(*mine, "--save", "expected.json", folder=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "mylib" in first.stdout
    same = command(*mine, "--compare", "expected.json", folder=tmp_path)
    assert (same.returncode, "differences from expected.json: 0" in same.stdout) == (0, True)
    (tmp_path / "mylib.py").write_text("def take(x):\n    return memoryview(x)[::-1]\n")
    changed = command(*mine, "--compare", "expected.json", folder=tmp_path)
    assert changed.returncode == 1
    assert "array → mylib.py:take: shared → wrong values: float64" in changed.stdout
    assert command("--library", "nothing", folder=tmp_path).returncode == 2
    assert command("--report", "x.pdf", folder=tmp_path).returncode == 2
    assert command("--read", "mylib.py", folder=tmp_path).returncode == 2
    assert command("--read", "expected.json", "--script", "a b c", folder=tmp_path).returncode == 2
    assert command("--script", "array memoryview uint8", folder=tmp_path).returncode == 2


def test_a_run_resumes(tmp_path):
    path = tmp_path / "r.json"
    mine = ("--consumer", f"{PARTNERS}:right", "--against", "python", "--save", "r.json")
    command(*mine, folder=tmp_path)
    record = load(path)
    record.cells[0].outcomes = "s" * len(ARRAYS)
    kept = record.cells[0].key
    del record.cells[1:]
    save(record, path)
    command(*mine, "--resume", folder=tmp_path)
    cells = {cell.key: cell.outcomes for cell in load(path).cells}
    assert len(cells) > 3 and cells[kept] == "s" * len(ARRAYS)


def told_by(text: str, folder: Path) -> tuple[int, str]:
    """The exit code and output of a script."""
    script = folder / "script.py"
    script.write_text(text, "utf-8")
    path = os.pathsep.join([command_line.PACKAGE_FOLDER, str(Path(PARTNERS).parent), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path}
    line = [sys.executable, script]
    done = subprocess.run(line, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    "name, array, code, says",
    [
        ("dies", "rank 4", -11, "passed:"),
        ("refuses_bool", "bool", 0, "outcome: refused TypeError: no bool here"),
        ("right", "order 10", 0, "outcome: shared"),
        ("doubles", "int32", 1, "defect: wrong values"),
        ("caches", "float64", 1, "defect: aliasing lost"),
    ],
)
def test_scripts_that_need_the_suite_repeat_their_cell(record, tmp_path, name, array, code, says):
    text = standalone(record, cell_of(record, "numpy", f":{name}"), array)
    assert "gridbuf-conformance" in text
    returned, told = told_by(text, tmp_path)
    assert returned == code and says in told, told


@pytest.mark.parametrize(
    "name, array, outcome, message, code, says",
    [
        ("right", "negative strides 2", "shared", "", 0, "passed: ["),
        ("doubles", "rank 2", "wrong values", "", 1, "defect: ["),
        ("right", "rank 2", "wrong values", "", 0, "right: ["),
        ("narrows", "float64", "converted", "float64 as float32", 0, "arrived: ["),
        ("forgets_read_only", "read-only int32", "read-only lost", "its AI export …", 1, "defect:"),
        ("right", "read-only int32", "read-only lost", "its AI export …", 0, "cannot be written"),
        ("right", "read-only int32", "read-only lost", "its PB export …", 0, "cannot be written"),
        ("keeps_no_owner", "int32", "lifetime broken", "", 1, "defect:"),
        ("right", "int32", "lifetime broken", "", 0, "right:"),
        ("dies", "rank 4", "crash", "the process died by SIGSEGV at step consume", -11, ""),
        ("right", "rank 4", "crash", "the process died by SIGSEGV at step consume", 0, "lives"),
    ],
)
def test_scripts_without_the_suite_tell_a_defect(
    tmp_path, name, array, outcome, message, code, says
):
    """The consumer is a module here, as one of a package is."""
    cell = Cell("numpy", f"interop_partners:{name}", "numpy", "partners")
    cell.set(array, outcome, message)
    text = standalone(Record("3.11", "linux", {"numpy": "2.4.6"}), cell, array)
    assert "gridbuf" not in text and len(text.splitlines()) <= 19
    returned, told = told_by(text, tmp_path)
    assert returned == code and says in told, told


def test_a_script_of_bytes_imports_modules_only(tmp_path):
    cell = Cell("bytes", "numpy.asarray", "python", "numpy")
    cell.set("uint8", "wrong values", "shape [] instead of [5]")
    text = standalone(Record("3.11", "linux", {"numpy": "2.4.6"}), cell, "uint8")
    returned, told = told_by(text, tmp_path)
    assert returned == 1 and told.startswith("defect:"), told


@pytest.mark.parametrize("name", with_(lambda array: array.plan.dtype != "struct"))
def test_the_array_of_a_script_is_that_of_the_plan(name):
    import numpy

    from gridbuf_conformance.plugins.libraries.numpy import NumPyProducer
    from gridbuf_conformance.plugins.scoreboard.cells import make

    plan = ARRAYS[name].plan
    wanted, _ = make(NumPyProducer(), plan)
    for is_aligned in (False, True):
        made: dict = {"numpy": numpy}
        exec("\n".join(scripts._array(plan, is_aligned)), made)
        array = made["a"]
        assert (array.shape, array.dtype) == (wanted.shape, wanted.dtype)
        assert not array.size or array.strides == wanted.strides
        assert not is_aligned or made["m"].ctypes.data % 64 == 0


def test_a_script_names_packages_as_an_index_has_them():
    versions = {"PIL": "13.0.0", "torch": "2.13.0+cpu", "pygame": "2.5.8", "mlx": "0.32.4"}
    for source, package in (
        ("PIL", "pillow==13.0.0"),
        ("torch", "torch==2.13.0"),
        ("pygame", "pygame-ce==2.5.8"),
        ("mlx", "mlx[cpu]==0.32.4"),
    ):
        cell = Cell("numpy", "numpy.asarray", source, "numpy", "s" * len(ARRAYS))
        text = standalone(Record("3.12.1", "linux", {**versions, "numpy": "2.5.5"}), cell, "int32")
        (line,) = re.findall(r"^# dependencies = (.*)$", text, re.MULTILINE)
        assert sorted(json.loads(line)) == sorted([package, "numpy==2.5.5"])


def test_the_marker_of_pytest_fails_with_the_differences(tmp_path):
    (tmp_path / "mylib.py").write_text("def take(x):\n    return memoryview(x)\n")
    command(
        "--consumer", "mylib.py:take", "--against", "python", "--save", "r.json", folder=tmp_path
    )
    (tmp_path / "test_mine.py").write_text(
        "import pytest\n\n"
        "@pytest.mark.gridbuf_interop(expected='r.json', consumers=['mylib.py:take'], "
        "against=['python'])\n"
        "def test_mine():\n    pass\n"
    )
    path = os.pathsep.join([command_line.PACKAGE_FOLDER, *sys.path])
    plugin = ("-p", "gridbuf_conformance.pytest_plugin", "-p", "no:cacheprovider", "-W", "error")
    line = [sys.executable, "-m", "pytest", "-q", f"--rootdir={tmp_path}", *plugin, "test_mine.py"]
    environment = {**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "mylib.py").write_text("def take(x):\n    raise TypeError('no')\n")
    done = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (
        done.returncode == 1 and "array → mylib.py:take: shared → refused: float64" in done.stdout
    )


def test_the_page_has_every_cell_and_the_same_bytes(record, tmp_path):
    text = page.render([record, record], ["a < b"])
    assert text == page.render([record, record], ["a < b"])
    assert "a &lt; b" in text and "wrong values" in text and "http-equiv" in text
    assert not re.findall(
        r'(?:src|href)="(?!#)', re.sub(r'<a href="https://[^"]*">(tracker|source)', "", text)
    )
    for source, target in score.pairs(record):
        assert f'href="#r0-{source}-{target}"' in text and f'id="r0-{source}-{target}"' in text
    assert text.count("<pre>") == 2 * len(record.cells)
    done = command("--read", "r.json", "--report", "p.html", folder=tmp_path)
    assert done.returncode == 2
    save(record, tmp_path / "r.json")
    done = command("--read", "r.json", "--compare", "r.json", "--report", "p.html", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "<li>none</li>" in (tmp_path / "p.html").read_text("utf-8")


def test_features_are_measured(record):
    right, tried = score.features(record, "numpy", "producer")["negative strides"]
    assert right == tried == 9
    assert {"__dlpack__", "buffer", "max_version=", "copy=", "versioned"} <= set(
        record.protocols["numpy"]
    )
    taken = score.features(record, "interop_partners", "consumer")
    for kind in ("unaligned", "mapped file"):
        right, tried = taken[kind]
        assert tried > 40 and right == tried


def test_a_compressed_record_is_the_same(tmp_path):
    cell = Cell("array", "numpy.asarray", "python", "numpy", "s" * len(ARRAYS))
    record = Record("3.11", "linux", cells=[cell])
    for _ in range(2):
        save(record, tmp_path / "r.json.gz")
        made = (tmp_path / "r.json.gz").read_bytes()
        save(record, tmp_path / "r.json")
        assert gzip.decompress(made) == (tmp_path / "r.json").read_bytes()
        assert made == gzip.compress((tmp_path / "r.json").read_bytes(), mtime=0)
    assert load(tmp_path / "r.json.gz") == load(tmp_path / "r.json")
    (tmp_path / "r.json.gz").write_bytes(made[:-9])
    with pytest.raises(RecordError, match="is not a record"):
        load(tmp_path / "r.json.gz")


def test_records_of_other_arrays_are_refused(tmp_path):
    path = tmp_path / "r.json"
    save(Record("3.11", "linux"), path)
    path.write_text(path.read_text().replace('"arrays": 2', '"arrays": 0'))
    assert command("--read", "r.json", folder=tmp_path).returncode == 2
    assert json.loads(path.read_text())["arrays"] == 0


def test_a_record_of_version_1_is_read_and_kept_as_it_is(tmp_path):
    """Arrays that are newer do not differ, and its cells run again."""
    path = tmp_path / "r.json"
    cell = Cell("array", "memoryview", "python", "python", "s" * 66)
    save(Record("3.11", "linux", cells=[cell], name="r", arrays=1), path)
    written = path.read_bytes()
    assert json.loads(written)["schema"].endswith("/1")
    old = load(path)
    assert old.cells[0].outcome("float64") == "shared"
    assert old.cells[0].outcome("large float64") == "not made"
    save(old, path)
    assert path.read_bytes() == written
    cell = replace(cell, outcomes="s" * 65 + "W" + "s" * (len(ARRAYS) - 66))
    new = Record("3.11", "linux", cells=[cell])
    (line,) = differences(old, new)
    assert line == "array → memoryview: shared → wrong values: read-only offset"
    again = run(Selection(("python",), ("python",)), done=old)
    assert again.arrays == 2 and again.cells[0].outcome("large float64") != "not made"


def test_a_function_of_a_file_can_name_its_library(tmp_path):
    text = "import numpy\n\n\ndef take(x):\n    return numpy.array(x)\n"
    (tmp_path / "mine.py").write_text(text)
    target = f"{tmp_path / 'mine.py'}:take"
    found = run(Selection(against=("python",), consumers=(f"rich={target}",)))
    assert {(c.target, c.consumer) for c in found.cells} == {("rich", target)}
    assert found.libraries["rich"] == metadata.version("rich")
