"""Random calls of every function of the C interface: a status, never a crash. Bad handles, sizes, NULL and numbers."""

from __future__ import annotations

import ctypes
import random
import re

import c_library as c
import pytest
from c_library import c_lib, options

CALLS = 20_000
NUMBERS = [*range(-3, 9), 13, 64, 65, 2**31 - 1, -(2**31)]
LENGTHS = [*range(-2, 9), 2**31, 2**62, -(2**63), 2**63 - 1]


KINDS = ("array", "storage", "workspace")


def kind_of(type_: str) -> str:
    """Which of them a type is a handle of."""
    return next(kind for kind in KINDS if kind in type_)


class Calls:
    """Random arguments from the declarations of the header, and the handles and tensors that they made."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.handles: dict[str, list[ctypes.c_void_p]] = {kind: [] for kind in KINDS}
        self.tensors: list[ctypes.c_void_p] = []
        self.memory = ctypes.create_string_buffer(1 << 16)
        self.numbers = (ctypes.c_int64 * 256)()

    def list_of_numbers(self) -> object:
        # As long as the longest list that a valid number of dimensions reads.
        for place in range(12):
            self.numbers[place] = self.random.choice([0, 1, 2, 3, self.random.choice(LENGTHS)])
        return self.random.choice([self.numbers] * 4 + [None])

    def options(self) -> object:
        choose = self.random.choice
        shape = [
            choose([0, 1, 2, 5, 40, choose(LENGTHS)]) for _ in range(choose([0, 1, 2, 3, 3, 9]))
        ]
        made = options(shape)
        for name in self.random.sample(
            [field for field, _ in c.Options._fields_], choose([0, 1, 2, 3])
        ):
            if name in ("memory", "kind", "flags", "reserved", "device_id"):
                setattr(made, name, choose(NUMBERS) & (2**32 - 1 if name == "flags" else -1))
            elif name == "struct_bytes":
                made.struct_bytes = choose([0, 1, 8, 119, 120])
            elif name in ("dtype", "backend"):
                setattr(
                    made,
                    name,
                    choose(
                        [
                            b"float32",
                            b"int8",
                            b"<c8",
                            b"|V3",
                            b"gt:gpu",
                            b"gt:cpu_ifirst",
                            b"",
                            b"x" * 300,
                        ]
                    ),
                )
            elif name in ("shape", "halo", "aligned_index"):
                setattr(
                    made,
                    name,
                    ctypes.cast(self.list_of_numbers() or 0, ctypes.POINTER(ctypes.c_int64)),
                )
            elif name in ("layout", "dim_kinds", "device_layout"):
                order = [*range(len(shape))] + [0] * 64
                made_list = (ctypes.c_int32 * 80)(
                    *self.random.sample(order[: len(shape)], len(shape)),
                    *[choose(NUMBERS) for _ in range(9)],
                )
                setattr(made, name, made_list)
            elif name == "dims":
                made.dims = (ctypes.c_char_p * 80)(
                    *[
                        choose([b"I", b"J", b"K", b"Cell", b"0", b"", None, b"y" * 200])
                        for _ in range(10)
                    ]
                )
            elif name in ("alignment_bytes", "device_alignment_bytes"):
                setattr(made, name, choose([1, 3, 64, 4096, choose(LENGTHS)]))
        return choose([ctypes.byref(made)] * 6 + [None])

    def handle(self, kind: str) -> object:
        other = self.random.choice([one for one in KINDS if one != kind])
        live, wrong = self.handles[kind], self.handles[other]
        return self.random.choice(live[-8:] * 2 + wrong[-1:] + [None, self.memory])

    def argument(self, type_: str, name: str, function: str) -> object:
        choose = self.random.choice
        if (
            name == "out"
            or type_ == "gridbuf_info*"
            or name in ("info", "data", "kind", "before", "freed_bytes", "peak_bytes")
        ):
            if name == "info":
                made = c.Info(struct_bytes=choose([ctypes.sizeof(c.Info), 0, 9]))
                return choose([ctypes.byref(made)] * 6 + [None])
            return choose([ctypes.byref(ctypes.c_void_p())] * 9 + [None])
        if name == "digest":
            return choose([(ctypes.c_uint64 * 2)(), None])
        if name == "block":
            return choose([ctypes.byref(ctypes.c_void_p()), None])
        if type_.startswith("const gridbuf_options"):
            return self.options()
        if type_.endswith(("gridbuf_array*", "gridbuf_storage*", "gridbuf_workspace*")):
            return self.handle(kind_of(type_))
        if name == "strides_bytes":
            return choose(
                [None, None, (ctypes.c_int64 * 256)(*[choose([0, 8, 16, -8, 3]) for _ in range(9)])]
            )
        if name in ("halo",):
            return self.list_of_numbers()
        if name == "depths":
            return choose(
                [None, (ctypes.c_int64 * 256)(*[choose([0, 0, 1, -1]) for _ in range(9)])]
            )
        if name == "items":
            return choose(
                [
                    (c.Item * 200)(
                        *[
                            c.Item(
                                choose([0, 1, 1, 2, 3, 9]),
                                0,
                                choose(LENGTHS),
                                choose(LENGTHS),
                                choose(LENGTHS),
                            )
                            for _ in range(9)
                        ]
                    ),
                    None,
                ]
            )
        if name == "axes":
            return choose(
                [None, (ctypes.c_int32 * 80)(*[choose([0, 1, 2, -1, 70]) for _ in range(9)])]
            )
        if name in ("name", "element"):
            return choose([ctypes.create_string_buffer(256), None])
        if name in ("release", "context"):
            return None
        if type_ in ("int64_t", "uint64_t"):
            return ctypes.c_int64(choose(LENGTHS))
        assert type_ == "int32_t", (function, type_, name)
        return ctypes.c_int32(choose(NUMBERS))

    def call(self, function: str, parameters: list[tuple[str, str]]) -> None:
        if function == "gridbuf_array_wrap":
            # C cannot know how long memory is, so these fit.
            small = options(
                [self.random.choice([0, 1, 2, 3]) for _ in range(self.random.choice([0, 1, 2, 3]))]
            )
            small.memory, small.flags = self.random.choice(NUMBERS), self.random.choice([0, 4, 8])
            small.dtype = self.random.choice([None, b"int8", b"<c8", b"float65"])
            data = (
                ctypes.c_void_p(ctypes.addressof(self.memory) + (1 << 15))
                if self.random.random() < 0.9
                else None
            )
            arguments = [
                data,
                self.argument("", "strides_bytes", function),
                ctypes.byref(small),
                None,
                None,
                ctypes.byref(ctypes.c_void_p()),
            ]
        elif function == "gridbuf_array_from_dlpack":
            tensor = self.tensors.pop() if self.tensors and self.random.random() < 0.9 else None
            arguments = [tensor, self.options(), ctypes.byref(ctypes.c_void_p())]
        else:
            arguments = [self.argument(type_, name, function) for type_, name in parameters]
        status = getattr(c_lib, function)(*arguments)
        assert 0 <= status <= 8, (
            f"{function}{arguments} is {status}: {c_lib.gridbuf_last_error().decode()}"
        )
        if status != 0:
            text = c_lib.gridbuf_last_error().decode()
            assert text, function
            python = re.search(r"\bNone\b|=\"|register_preset|presets\(\)|\bgridbuf\.\w", text)
            assert not python, f"{function}: {text}"  # C has no such words.
            return
        if function.endswith("_release") and arguments[0] is not None:
            for kind in self.handles:
                self.handles[kind] = [
                    handle for handle in self.handles[kind] if handle is not arguments[0]
                ]
        if parameters and parameters[-1][1] == "out" and "**" in parameters[-1][0]:
            made = arguments[-1]._obj
            kind = parameters[-1][0]
            (self.tensors if "DLManaged" in kind else self.handles[kind_of(kind)]).append(
                ctypes.c_void_p(made.value)
            )

    def end(self) -> None:
        for tensor in self.tensors:
            out = ctypes.c_void_p()
            if c_lib.gridbuf_array_from_dlpack(tensor, None, ctypes.byref(out)) == 0:
                self.handles["array"].append(out)
        for kind, handles in self.handles.items():
            for handle in handles:
                assert getattr(c_lib, f"gridbuf_{kind}_release")(handle) == 0


def declarations() -> dict[str, list[tuple[str, str]]]:
    text = re.sub(r"/\*.*?\*/", "", c.HEADER.read_text(), flags=re.DOTALL)
    found = {}
    for name, parameters in re.findall(
        r"^gridbuf_status (gridbuf_\w+)\((.*?)\);", text, flags=re.DOTALL | re.MULTILINE
    ):
        split = [" ".join(p.split()).replace("struct ", "") for p in parameters.split(",")]
        found[name] = (
            []
            if split == ["void"]
            else [re.fullmatch(r"(.*?[ *])(\w+)(?:\[.*\])?", p).groups() for p in split]
        )
    return {
        name: [(type_.strip(), p) for type_, p in parameters] for name, parameters in found.items()
    }


@pytest.mark.parametrize("seed", range(4))
def test_random_calls(seed: int) -> None:
    calls, functions = Calls(seed), declarations()
    assert len(functions) == 51
    c_lib.gridbuf_set_memory_limit(ctypes.c_int64(64 << 20))
    names = [*functions, *["gridbuf_array_create", "gridbuf_storage_create"] * 4]
    for _ in range(CALLS // 4):
        name = calls.random.choice(names)
        if name in ("gridbuf_set_memory_limit", "gridbuf_set_thread_count"):
            continue
        if name.endswith("_release") and calls.random.random() < 0.7:
            continue
        calls.call(name, functions[name])
        if sum(map(len, calls.handles.values())) > 200:
            calls.end()
            calls.handles = {kind: [] for kind in calls.handles}
            calls.tensors = []
    calls.end()
    c_lib.gridbuf_use_emulated_device(0, None)
    c_lib.gridbuf_set_memory_limit(ctypes.c_int64(2**63 - 1))
