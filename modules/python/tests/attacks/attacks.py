"""The attacks: each makes random cases of one kind. A case depends on its random numbers only, so that it can be repeated.

A case fails with an exception, a crash, or a hang; the process that runs it is ended afterwards. Crashes need no check here.
"""

from __future__ import annotations

import os
import pickle
import random
import resource
import signal
import sys
import threading
import time
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import gridbuf
import gridbuf.storage
import hypothesis
import numpy as np
from gridbuf import memory, testing
from hypothesis import HealthCheck, Phase, settings

SANITIZED = "libclang_rt" in os.environ.get("LD_PRELOAD", "")
ATTACKS: dict[str, type[Attack]] = {}


class LeftOver(SystemExit):
    """Raised in a forked child that ends as a program does, through all frames of the worker."""


class Attack:
    """Base class. The docstring of each attack is a line of `--help`."""

    under_sanitizers: ClassVar[bool] = True

    def __init_subclass__(cls) -> None:
        ATTACKS[cls.__name__.lower()] = cls

    @classmethod
    def can_run(cls) -> bool:
        return cls.under_sanitizers or not SANITIZED

    def case(self, draw: random.Random) -> None:
        raise NotImplementedError


class Copies(Attack):
    """copies, casts and masks against NumPy, byte by byte: types, layouts, overlaps, threads, instruction sets"""

    def __init__(self) -> None:
        import test_copyto_random

        self.random = test_copyto_random
        warnings.simplefilter("ignore")

    def case(self, draw: random.Random) -> None:
        memory.set_simd(draw.choice(memory.supported_simd()))
        memory.set_num_threads(draw.choice((1, 1, 2, 8)))
        # Long enough for several threads.
        large = draw.random() < 0.02
        self.random.check(self.random.random_case(draw, large), "copyto")


class Functions(Attack):
    """NumPy's functions on storages against NumPy: every function, kind, type, layout, `out=`, `where=`, names"""

    def __init__(self) -> None:
        import differential

        testing.emulated_device()
        self.check = differential.check

    def case(self, draw: random.Random) -> None:
        answer = self.check(draw)
        assert answer is None or not answer[0], answer[0]


class Storages(Attack):
    """lives of storages against a model, with failures of every call of the device"""

    def __init__(self) -> None:
        import test_storage_model

        self.model = test_storage_model

    def case(self, draw: random.Random) -> None:
        kind = draw.choice(list(self.model.KINDS))
        two_layouts = kind == "synced" and draw.random() < 0.5
        members = {"kind": kind, "two_layouts": two_layouts}
        machine = type(f"Model_{kind}", (self.model.Model,), members)
        limits = settings(
            self.model.LONG,
            max_examples=2,
            database=None,
            stateful_step_count=draw.choice((20, 60)),
            phases=[Phase.generate, Phase.shrink],
        )
        seeded = hypothesis.seed(draw.getrandbits(64))(machine)
        self.model.run_state_machine_as_test(seeded, settings=limits)


class Producers(Attack):
    """hostile producers for every import: structures and dicts with any values in their fields"""

    TESTS = (
        "test_lent_buffers_come_in_exactly_when_the_model_says_so",
        "test_views_come_in_through_every_interface_alike",
        "test_dicts_with_anything_in_them_never_crash",
        "test_tensors_with_anything_in_them_are_given_back_once",
        "test_structs_with_anything_in_them_never_crash",
    )

    def __init__(self) -> None:
        import test_imports_random

        limits = settings(
            max_examples=20,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        self.tests = [limits(getattr(test_imports_random, name)) for name in self.TESTS]

    def case(self, draw: random.Random) -> None:
        hypothesis.seed(draw.getrandbits(64))(draw.choice(self.tests))()


ACCEPTED = (Exception,)
"""What a call may answer to hostile arguments, but for a SystemError: that is an error that the extension did not report well."""


class Arguments(Attack):
    """every public callable with hostile arguments"""

    MODULES = ("gridbuf", "gridbuf.storage", "gridbuf.memory", "gridbuf.testing", "gridbuf.call")
    # They change the process as they say: other signals, no device for the next case, pages that do not exist.
    LEFT_OUT = frozenset(
        {"gridbuf.testing.device_table", "__class__", "__init_subclass__", "__subclasshook__"}
    )

    def __init__(self) -> None:
        import test_robust
        import test_storage_robust

        testing.emulated_device()
        resource.setrlimit(resource.RLIMIT_AS, (1 << 36, 1 << 36)) if not SANITIZED else None
        self.values = [*test_robust.HOSTILE, *test_storage_robust.VALUES]
        self.keywords = sorted({*test_robust.PARAMETERS, *test_storage_robust.KEYWORDS})
        self.functions = sorted(self.public_functions())

    def public_functions(self) -> Iterator[str]:
        for name in self.MODULES:
            module = __import__(name, fromlist=["_"])
            for member in dir(module):
                if callable(getattr(module, member)) and f"{name}.{member}" not in self.LEFT_OUT:
                    yield f"{name}.{member}"

    def objects(self, draw: random.Random) -> Any:
        kind = draw.choice(("cpu", "gpu", "synced", "managed", "buffer", "plan", "state"))
        if kind == "buffer":
            return gridbuf.ones((2, 3), draw.choice(("f8", "i2", "?")), dims="IJ").base
        if kind == "plan":
            return gridbuf.plan((2, 3))
        from foreign import KINDS

        if kind == "state":
            return gridbuf.storage.SyncState()
        return gridbuf.storage.ones((2, 3), **KINDS[kind])

    def value(self, draw: random.Random) -> Any:
        choice = draw.random()
        if choice < 0.3:
            return draw.choice(((2, 3), "f8", 1, "gt:gpu", "IJ", np.ones((2, 3)), (1, 0), 0, None))
        return self.objects(draw) if choice < 0.4 else draw.choice(self.values)

    def case(self, draw: random.Random) -> None:
        if draw.random() < 0.4:
            module, _, name = draw.choice(self.functions).rpartition(".")
            function = getattr(sys.modules[module], name)
        else:
            target = self.objects(draw)
            names = [n for n in dir(type(target)) if n not in self.LEFT_OUT]
            function = getattr(type(target), draw.choice(names), None)
            if (
                callable(function)
                and not isinstance(function, types.BuiltinFunctionType)
                and draw.random() < 0.9
            ):
                function = function.__get__(target) if hasattr(function, "__get__") else function
        if not callable(function):
            return
        arguments = [self.value(draw) for _ in range(draw.choice((0, 1, 1, 2, 2, 3)))]
        names = draw.sample(self.keywords, draw.choice((0, 0, 0, 1, 2)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                result = function(*arguments, **{name: self.value(draw) for name in names})
                if draw.random() < 0.2 and getattr(result, "dtype", np.dtype(int)).kind != "U":
                    repr(
                        result
                    )  # Bytes of `empty` need not be characters, and NumPy says so with a SystemError.
            except SystemError:
                raise
            except ACCEPTED:
                pass


def in_a_child(work: Callable[[], None], seconds: int = 60) -> str:
    """Run `work` in a forked child; what went wrong there, or "". After `seconds` the child ends with SIGALRM."""
    child = os.fork()
    if child:
        status = os.waitpid(child, 0)[1]
        return "" if status == 0 else f"the child ended with wait status {status}"
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)
    try:
        work()
    except LeftOver:
        raise  # ends as a program does, in the worker's main function
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


class Operations(Attack):
    """Base class: one operation of each kind, on small and large arrays and every kind of storage."""

    def __init__(self) -> None:
        from operations import OPERATIONS

        self.operations = list(OPERATIONS.values())
        self.answers: tuple[type[Exception], ...] = (MemoryError, gridbuf.SyncConflictError)

    def start_device(self) -> None:
        """A device does not survive a fork: a child that needs it starts it."""
        from foreign import KINDS

        testing.emulated_device()
        self.storages = [
            gridbuf.storage.ones((side, 64), **kind)
            for side in (4, 4096)
            for kind in KINDS.values()
        ]

    def one(self, draw: random.Random) -> None:
        try:
            if draw.random() < 0.4:
                draw.choice(self.operations)()
            else:
                draw.choice(ON_STORAGES)(draw.choice(self.storages), draw)
        except self.answers:
            pass

    def threads(
        self, draw: random.Random, count: int, stop: threading.Event
    ) -> list[threading.Thread]:
        """Daemon threads that run operations until `stop` is set."""

        def work(own: random.Random) -> None:
            while not stop.is_set():
                self.one(own)

        seeds = [random.Random(draw.getrandbits(64)) for _ in range(count)]
        started = [threading.Thread(target=work, args=(own,), daemon=True) for own in seeds]
        for thread in started:
            thread.start()
        return started


def _assign(storage: Any, draw: random.Random) -> None:
    storage[1:3] = draw.choice((1, np.ones((2, 64), "f4"), storage[0:2], storage[2:0:-1]))


def _assign_masked(storage: Any, draw: random.Random) -> None:
    gridbuf.copyto(storage, draw.choice((2, storage.copy())), where=storage != 1)


ON_STORAGES: list[Callable[[Any, random.Random], Any]] = [
    _assign,
    _assign_masked,
    lambda s, _: s.copy(),
    lambda s, _: s + 1,
    lambda s, _: s[1:] + s[:-1],
    lambda s, _: s.sum(axis=0),
    lambda s, _: s.astype("f4"),
    lambda s, _: s.synchronize(),
    lambda s, _: s.host_to_device() if s.sync_state is not None else None,
    lambda s, _: s.sync_state.state if s.sync_state is not None else None,
    lambda s, _: float(s[0, 0]),
    lambda s, _: s.__dlpack__(max_version=(1, 0)),
    lambda s, _: gridbuf.storage.storage(s, device=None).to_numpy(),
    lambda s, _: pickle.loads(pickle.dumps(s[:2])),
    lambda s, _: repr(s),
    lambda s, _: (memory.statistics(), testing.statistics(), gridbuf.get_num_threads()),
    lambda s, _: memory.trim(),
    lambda s, _: gridbuf.show_config("dict"),
]


class Forks(Operations):
    """forks while other threads work: the child uses host memory, and gets an error from the device"""

    def __init__(self) -> None:
        super().__init__()
        self.start_device()
        self.answers += (gridbuf.DeviceUnavailableError,)

    def case(self, draw: random.Random) -> None:
        stop = threading.Event()
        threads = self.threads(draw, 2, stop)
        failures = []
        for _ in range(5):
            time.sleep(draw.random() * 0.02)
            failures.append(in_a_child(lambda: [self.one(draw) for _ in range(10)]))
        stop.set()
        for thread in threads:
            thread.join()
        assert not any(failures), failures


class Exits(Operations):
    """exits of the interpreter while daemon threads work"""

    def case(self, draw: random.Random) -> None:
        def work() -> None:
            self.start_device()
            self.threads(draw, 3, threading.Event())
            time.sleep(draw.random() * 0.05)
            raise LeftOver

        failure = in_a_child(work)
        assert not failure, failure


class Limits(Operations):
    """limits of the address space from 200 MB down to nothing, in old and new threads"""

    under_sanitizers = False

    def case(self, draw: random.Random) -> None:
        def work() -> None:
            self.start_device()
            ready, begin, done = (threading.Event() for _ in range(3))

            def in_new_thread() -> None:
                # NumPy's thread-local variables are 46 KiB: without memory for them the C library ends the process.
                np.ones(3) / np.ones(3)
                ready.set()
                begin.wait()
                self.one(draw)
                done.set()

            threading.Thread(target=in_new_thread, daemon=True).start()
            ready.wait()
            mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            limit = mapped + int(200e6 * draw.random() ** 3)
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            for _ in range(10):
                self.one(draw)
            begin.set()
            done.wait(1)

        failure = in_a_child(work)
        assert not failure, failure


class Stacks(Operations):
    """threads with small stacks"""

    under_sanitizers = False

    def case(self, draw: random.Random) -> None:
        def work() -> None:
            self.start_device()
            threading.stack_size(draw.randrange(SMALLEST_STACK_BYTES, 512 << 10, 4096))
            for _ in range(5):
                thread = threading.Thread(target=self.one, args=(draw,))
                thread.start()
                thread.join()

        failure = in_a_child(work)
        assert not failure, failure


SMALLEST_STACK_BYTES = 96 << 10
"""CPython and NumPy themselves need about this much for what the operations ask of them."""
for base in (Operations,):
    del ATTACKS[base.__name__.lower()]
