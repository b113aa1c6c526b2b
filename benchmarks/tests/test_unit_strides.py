"""Which accesses are counted in the machine code of a stencil, and how GridTools is told of unit strides."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

from gridbuf_benchmarks import unit_strides

_LOOPS = """
extern "C" void known(int n, const double* a, double* b) {
#pragma omp parallel for simd
  for (int i = 0; i < n; ++i) b[i] = 2.0 * a[i];
}
extern "C" void unknown(int n, long s, const double* a, double* b) {
#pragma omp parallel for simd
  for (int i = 0; i < n; ++i) b[i * s] = 2.0 * a[i * s];
}
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads the instructions of x86-64")
@pytest.mark.parametrize("loop", ["known", "unknown"])
def test_wide_accesses_are_found_where_the_compiler_knows_the_stride(
    loop: str, tmp_path: Path
) -> None:
    source, library = tmp_path / "loops.cc", tmp_path / "loops.so"
    text = [part for part in _LOOPS.split('extern "C"') if f"void {loop}(" in part]
    source.write_text('extern "C"' + text[0])
    # At -O3 g++ adds a second loop for a stride of 1, where it sees through the loop.
    options = ["-O3", "-fno-version-loops-for-strides", "-fopenmp", "-fPIC", "-shared"]
    command = ["g++", *options, str(source), "-o", str(library)]
    subprocess.run(command, check=True, timeout=60)
    counted = unit_strides.accesses(library)
    assert counted[8] >= 2
    assert (counted.get(16, 0) >= 2) == (loop == "known")


@pytest.mark.parametrize(
    ("instruction", "moved"),
    [
        ("movsd  (%r9,%rax,1),%xmm0", 8),
        ("movhpd %xmm0,(%rcx,%rdi,1)", 8),
        ("vmulsd 0x8(%rax),%xmm1,%xmm2", 8),
        ("vaddpd (%rax){1to4},%ymm1,%ymm2", 8),
        ("vgatherdpd (%rax,%xmm1,8),%ymm0{%k1}", 8),
        ("mulpd  (%rax),%xmm1", 16),
        ("vinsertf128 $0x1,(%rax),%ymm0,%ymm0", 16),
        ("movupd (,%rax,8),%xmm1", 16),
        ("vmovupd %ymm0,0x20(%rbp,%rax,8)", 32),
        ("vfmadd231pd (%rax),%zmm1,%zmm2", 64),
        ("movapd %xmm1,%xmm2", None),
        ("movaps %xmm0,0x10(%rsp)", None),
        ("movsd  0x1f67d(%rip),%xmm5", None),
        ("mov    (%rsp),%rax", None),
    ],
)
def test_an_access_is_as_wide_as_what_it_moves_at_once(
    instruction: str, moved: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"0000 <loop._omp_fn.0>:\n    79b4:\t{instruction}\n"
    printed = subprocess.CompletedProcess([], 0, stdout=text)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: printed)
    assert dict(unit_strides.accesses(Path("any.so"))) == ({} if moved is None else {moved: 1})


def test_the_headers_are_told_of_unit_strides_and_otherwise_as_they_were(tmp_path: Path) -> None:
    gridtools_cpp = pytest.importorskip("gridtools_cpp", reason="GT4Py is not installed")
    own = Path(gridtools_cpp.get_include_dir())
    made = unit_strides.headers_with_unit_strides(tmp_path / "include")
    files = [path.relative_to(own) for path in own.rglob("*.hpp")]
    changed = [path for path in files if (own / path).read_text() != (made / path).read_text()]
    assert [path.name for path in changed] == ["python_sid_adapter.hpp"]
    before, after = ((folder / changed[0]).read_text() for folder in (own, made))
    assert after.replace("UnitStrideDim = 0", "UnitStrideDim = size_t(-1)") == before
