"""Entry points written against CPython's C API: each has a benchmark that justifies it. All others are pybind11's."""

import pathlib
import re
import types

from gridbuf import _core

PYTHON = pathlib.Path(__file__).resolve().parents[1]
HOT = PYTHON / "hot"
PROMISES = PYTHON.parents[1] / "benchmarks" / "gridbuf_benchmarks" / "promises.py"

# By the promise (benchmarks/gridbuf_benchmarks/promises.py) that the entry points serve.
RAW = {
    "allocate-small": """
        allocate empty empty_like from_array full full_like ones ones_like plan zeros zeros_like
        _storage_empty _storage_empty_like _storage_full _storage_full_like _storage_ones _storage_ones_like
        _storage_zeros _storage_zeros_like _storage_as_storage _storage_storage
    """,
    "as-buffer": "as_buffer as_numpy",
    "asarray": """
        Buffer.__dlpack__ Buffer.__dlpack_device__
        Buffer.shape Buffer.ndim Buffer.dtype
    """,
    "storage-export": """
        StorageBase.__dlpack__ StorageBase.__dlpack_device__ StorageBase.shape StorageBase.ndim StorageBase.dtype
    """,
    "copyto-tiny": "copyto",
    "index": """
        Buffer.__getitem__ Buffer.__len__ StorageBase.__getitem__ StorageBase.__setitem__ StorageBase.__delitem__
        StorageBase.__len__ StorageBase.__iter__
    """,
    "ufunc": "StorageBase._parameters StorageBase._read_array StorageBase._write_array StorageBase._written",
}

# Names in pickles: pickle does not find the functions of pybind11.
PICKLED = "_restore _restore_plan _restore_storage"

# Of a type that is made by PyType_FromSpec; they have no pybind11 form.
TYPES = "Buffer.__new__ Buffer.__repr__ StorageBase.__new__"

DESCRIPTORS = {"getset_descriptor", "method_descriptor", "wrapper_descriptor", "member_descriptor"}


def raw_entry_points() -> set[str]:
    """Functions of the extension that are not pybind11's, and slots and members of the types that it makes itself."""
    found = set()
    for name, value in vars(_core).items():
        if isinstance(value, types.BuiltinFunctionType) and value.__self__ is _core:
            found.add(name)
        elif (
            isinstance(value, type)
            and type(value) is type
            and not issubclass(value, (Exception, int))
        ):
            for attribute, member in vars(value).items():
                if type(member).__name__ in DESCRIPTORS or attribute == "__new__":
                    found.add(f"{name}.{attribute}")
    return found


def test_every_raw_entry_point_has_a_reason() -> None:
    allowed = {name for names in (*RAW.values(), PICKLED, TYPES) for name in names.split()}
    found = raw_entry_points()
    assert found - allowed == set(), (
        "write these by pybind11, or name the benchmark that forbids it"
    )
    assert allowed - found == set(), "these are not raw any more: take them out of the list"


def test_every_file_of_them_names_its_benchmark() -> None:
    promises = set(
        re.findall(
            r'_(?:time|speed)\(\s*"([\w-]+)"', PROMISES.read_text()
        )  # its data, not the package
    )
    assert set(RAW) <= promises
    files = {path.name: path.read_text() for path in HOT.glob("*.cc")}
    assert len(files) > 10
    for name, text in files.items():
        comment = " ".join(line for line in text.partition("module;")[0].split("\n"))
        named = set(re.findall(r"`([\w-]+)`", comment)) & promises
        assert named or name == "pickles.cc", f"{name}: name the benchmark that justifies the file"
        assert "PyMethodDef" in text or "PyObject*" in text
