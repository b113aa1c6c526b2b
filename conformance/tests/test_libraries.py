"""A library has three names, and every option of every command takes each of them."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from gridbuf_conformance import cli, findings, libraries, named_consumers, producers
from gridbuf_conformance.cli import commands
from gridbuf_conformance.findings import Finding
from gridbuf_conformance.plugins.scoreboard import Selection
from gridbuf_conformance.plugins.scoreboard.records import Cell, Record
from gridbuf_conformance.plugins.scoreboard.scripts import standalone
from gridbuf_conformance.known import read
from gridbuf_conformance.targets import canonical

NAMES = {
    "PyTorch": ("torch", "PyTorch", "pytorch", "Torch"),
    "Pillow": ("PIL", "pil", "pillow", "Pillow"),
    "ONNX Runtime": ("onnxruntime", "ONNX Runtime", "onnx-runtime", "onnx_runtime"),
    "array-api-strict": ("array_api_strict", "array-api-strict"),
    "MLX": ("mlx.core", "mlx", "MLX"),
    "CPython": ("python", "CPython"),
}


@pytest.fixture
def inside(capsys, monkeypatch, tmp_path):
    """The command in this process: exit code, output, errors."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        try:
            code = cli.main(arguments)
        except SystemExit as exit:
            code = int(exit.code or 0)
        return code, *capsys.readouterr()

    return call


@pytest.mark.parametrize(("name", "written"), [(n, w) for n, all_ in NAMES.items() for w in all_])
def test_each_name_is_that_of_the_library(name, written):
    assert libraries.find(written).name == name


def test_each_library_is_found_by_its_strong_names():
    """Two libraries may share a package, but neither an import name nor a name for people."""
    for library in libraries.load():
        assert libraries.find(library.name) == library
        assert libraries.find(library.needs or library.module) == library


@pytest.mark.parametrize(
    ("written", "side", "name"),
    [
        ("PyTorch", "producer", "torch"),
        ("Pillow", "producer", "pillow"),
        ("pil", "producer", "pillow"),
        ("PyGLM", "producer", "glm"),
        ("pyqt6", "producer", "pyqt6"),
        ("torch.Strided", "producer", "torch.strided"),
        ("Pillow", "consumer", "PIL.Image.fromarray"),
        ("mylib:asarray", "consumer", "mylib:asarray"),
    ],
)
def test_a_target_by_the_name_of_its_library(written, side, name):
    assert canonical(written, side) == name


def test_a_library_with_several_consumers_is_all_of_them_or_a_question(monkeypatch):
    monkeypatch.setattr(producers.Entry, "is_usable", True)
    own = ["torch.from_dlpack", "torch.as_tensor", "torch.frombuffer"]
    assert [entry.name for entry in commands._entries_of("PyTorch", "consumer")] == own
    with pytest.raises(named_consumers.UnknownConsumer, match="name one of torch.from_dlpack, "):
        named_consumers.find("PyTorch")
    with pytest.raises(producers.UnknownProducer, match="'python' is not a producer"):
        producers.find("python")


@pytest.fixture
def two_findings(monkeypatch):
    """The findings of the suite are one of PyTorch and one of JAX."""
    texts = {one.name: "text" for one in fields(Finding) if one.default is MISSING}
    found = [
        Finding(**{**texts, "id": f"{library}-finding", "library": library, "newest": True})
        for library in ("PyTorch", "JAX")
    ]
    monkeypatch.setattr(findings, "load", lambda: {one.id: one for one in found})


@pytest.mark.parametrize("written", NAMES["PyTorch"])
def test_findings_of_a_library_by_any_name(inside, written, two_findings):
    code, out, _ = inside("list", "findings", "--library", written)
    assert code == 0 and "JAX-finding" not in out
    assert "PyTorch-finding" in out


def test_a_library_without_findings_has_none(inside, two_findings):
    code, out, _ = inside("list", "findings", "--library", "xarray")
    assert code == 0 and "0 findings" in out


@pytest.mark.parametrize("written", NAMES["PyTorch"])
def test_shipped_failures_by_any_name(written, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert read(Path(written)) == read(Path("torch"))


def test_pairs_of_a_library_by_any_name():
    expected = Selection(("python",), ("python",)).pairs()
    assert expected and Selection(("CPython",), ("cpython",)).pairs() == expected


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "pilow"),
        ("check", "--consumer", "pilow"),
        ("survey", "pilow"),
        ("survey", "--consumer", "pilow"),
        ("replay", "pilow", "PB-01", "{}"),
        ("known", "--update", "known.toml", "pilow"),
        ("list", "findings", "--library", "pilow"),
        ("interop", "--library", "pilow"),
        ("interop", "--against", "pilow"),
        ("interop", "--producer", "pilow"),
        ("interop", "--consumer", "pilow"),
    ],
    ids=" ".join,
)
def test_an_unknown_name_is_wrong_usage_with_the_nearest_names(inside, arguments, two_findings):
    code, _, told = inside(*arguments)
    assert code == 2, told
    assert told.startswith("error: 'pilow' is not a ") and "pillow" in told.lower()


def test_the_names_of_all_libraries_are_listed(inside):
    code, out, _ = inside("list", "libraries")
    assert code == 0
    for library in libraries.load():
        (line,) = (one for one in out.splitlines() if one.startswith(f"{library.name}  "))
        assert library.module in line and library.package in line


def test_a_script_installs_packages(tmp_path):
    cell = Cell("pillow", "numpy.asarray", "PIL", "numpy")
    record = Record("3.12.1", "linux", {"PIL": "13.0.0", "numpy": "2.5.5"}, cells=[cell])
    head = standalone(record, cell, "float64").splitlines()[2]
    packages = json.loads(head.partition("=")[2])
    assert packages[:2] == ["pillow==13.0.0", "numpy==2.5.5"]
