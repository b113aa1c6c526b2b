"""How storages look, in a terminal and in a notebook; looking at one changes nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gridbuf.storage
import numpy as np
import pytest
from foreign import KINDS, device_capsule, emulated
from gridbuf import testing
from gridbuf.storage import SyncState


SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(autouse=True)
def _device() -> Iterator[None]:
    with emulated():
        yield


def field(kind: str = "cpu", **more: Any) -> Any:
    return gridbuf.storage.zeros((3, 4), **{**KINDS[kind], **more})


def test_the_text_of_a_storage() -> None:
    storage = gridbuf.storage.ones(
        (2, 3), "f4", dims="JI", halo=(0, 1), layout=(1, 0), alignment_size=64
    )
    assert repr(storage) == (
        "gridbuf.storage.CPUStorage(shape=(2, 3), dtype=float32, dims=('J', 'I'), halo=((0, 0), (1, 1)), layout=(1, 0), "
        "padding=(14, 0), alignment_size=64, aligned_index=(0, 1), device=None)\n[[1., 1., 1.],\n [1., 1., 1.]]"
    )
    assert str(storage) == repr(storage)
    assert "strides=(4, 128)" in repr(storage[:, ::2])


@pytest.mark.parametrize("kind", ["gpu", "synced", "managed"])
def test_a_device_is_named_and_the_emulated_one_says_so(kind: str) -> None:
    assert "device='gpu' (emulated)" in repr(field(kind))
    assert "emulated device" in field(kind)._repr_html_()


def test_values_are_shown_only_where_the_host_has_them() -> None:
    storage = field("synced")
    storage[...] = 7
    assert "sync_state=SYNC_HOST_DIRTY" in repr(storage)
    assert "7." in repr(storage)
    storage.set_synchronized()
    storage.set_device_modified()
    before = testing.statistics()
    shown = repr(storage), storage._repr_html_()
    assert "sync_state=SYNC_DEVICE_DIRTY" in shown[0]
    assert not any("7." in text for text in shown)
    assert testing.statistics() == before
    assert storage.sync_state.state == SyncState.SYNC_DEVICE_DIRTY
    for kind in ("gpu", "managed"):
        assert "[" not in repr(field(kind))


def test_values_are_not_brought_while_a_foreigner_may_write_on_the_device() -> None:
    storage = field("synced")
    storage[...] = 7
    storage.synchronize()
    assert "7." in repr(storage)
    held = device_capsule(storage)
    before = testing.statistics()["device_to_host_bytes"]
    assert "7." not in repr(storage)
    assert testing.statistics()["device_to_host_bytes"] == before
    del held


def test_looking_raises_nothing_while_the_device_fails() -> None:
    storages = [field(kind) for kind in ("gpu", "synced", "managed")]
    storages[1].set_device_modified()
    with testing.failing(count=1000):
        for storage in storages:
            assert type(storage).__name__ in repr(storage)
            assert type(storage).__name__ in storage._repr_html_()


def test_a_long_storage_has_a_short_text() -> None:
    for shape in ((100_000,), (300, 300), (40, 40, 40), (6, 6, 6, 6, 6)):
        assert len(repr(gridbuf.storage.zeros(shape))) < 3000


@pytest.mark.parametrize("kind", ["cpu", "synced"])
def test_a_long_storage_shows_its_domain(kind: str) -> None:
    storage = gridbuf.storage.full((12, 12, 8, 2), 7.0, **{**KINDS[kind], "halo": (2, 2, 0, 0)})
    storage.domain_view[...] = 288.0
    before = testing.statistics()
    values = repr(storage).partition("\ndomain_view[0, 0, ...]:\n")[2]
    assert "288." in values and "7." not in values and "288." in storage._repr_html_()
    assert testing.statistics() == before
    plane = storage[:, :, 0, 0]
    assert repr(plane).endswith(f"\ndomain_view:\n{repr(plane.domain_view).partition(chr(10))[2]}")


def test_a_short_storage_or_one_without_a_domain_shows_all_values() -> None:
    for shape, halo in (((6, 6), 2), ((20, 20), 10), ((20, 20), 0)):
        storage = gridbuf.storage.full(shape, 7.0, halo=(halo, halo))
        storage.domain_view[...] = 288.0
        assert "domain_view" not in repr(storage)
        assert ("7." in repr(storage)) == (halo > 0)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("clean", ["current", "current"]),
        ("host", ["current", "older"]),
        ("device", ["older", "current"]),
        ("both", ["partly older", "partly older"]),
    ],
)
def test_the_picture_says_who_is_current(state: str, words: list[str]) -> None:
    storage = field("synced", halo=(1, 1))
    storage.set_synchronized()
    if state in ("host", "both"):
        storage[:1].set_host_modified()
    if state in ("device", "both"):
        storage[1:].set_device_modified()
    texts = [element.text for element in picture(storage).iter(f"{SVG}text")]
    assert texts[texts.index("host") + 1] == words[0]
    assert texts[texts.index("emulated device") + 1] == words[1]
    assert ("copied when it is accessed" in texts) == (state != "clean")


def picture(storage: Any) -> ElementTree.Element:
    """The SVG, which is well-formed XML."""
    found = re.search(r"<svg .*?</svg>", storage._repr_html_(), re.DOTALL)
    assert found is not None
    return ElementTree.fromstring(found[0])


@pytest.mark.parametrize(
    ("shape", "halo"),
    [
        ((), ()),
        ((5,), (1,)),
        ((0, 4), (0, 1)),
        ((4, 4), (2, 2)),
        ((1000, 1000, 80), (3, 3, 0)),
        ((2,) * 9, (0,) * 9),
    ],
)
def test_the_picture_fits_and_shows_the_halo(shape: tuple[int, ...], halo: tuple[int, ...]) -> None:
    svg = picture(gridbuf.storage.zeros(shape, halo=halo))
    width, height = (float(svg.attrib[name]) for name in ("width", "height"))
    for rectangle in svg.iter(f"{SVG}rect"):
        x, y, w, h = (float(rectangle.attrib[name]) for name in ("x", "y", "width", "height"))
        assert 0 <= x <= x + w <= width
        assert 0 <= y <= y + h <= height
    texts = [element.text for element in svg.iter(f"{SVG}text")]
    assert ("halo" in texts) == any(halo[:2])


def test_names_are_escaped() -> None:
    record = np.dtype([("<script>alert(1)</script>", "f8"), ('"&', "i4")])
    html = gridbuf.storage.zeros((2, 2), record)._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert picture(gridbuf.storage.zeros((2, 2), record)) is not None


def test_the_html_stands_alone() -> None:
    html = field("synced", halo=(1, 1))._repr_html_()
    for forbidden in ("<script", "<style", "<link", "href", "src=", "class=", "id="):
        assert forbidden not in html


@pytest.mark.skipif(
    shutil.which("chromium") is None, reason="there is no chromium to look at the picture with"
)
@pytest.mark.parametrize(("background", "colour"), [("#ffffff", "black"), ("#111111", "white")])
def test_a_browser_draws_it_on_light_and_dark_pages(
    tmp_path: Path, background: str, colour: str
) -> None:
    image = pytest.importorskip("matplotlib.image", reason="matplotlib reads the screenshot")
    page = tmp_path / "page.html"
    storage = field("synced", halo=(1, 1))
    storage[...] = 1
    page.write_text(
        f'<body style="background:{background};color:{colour}">{storage._repr_html_()}', "utf-8"
    )
    shot = tmp_path / "shot.png"
    subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
         "--window-size=600,500", f"--screenshot={shot}", page.as_uri()],
        check=True, capture_output=True, timeout=120,
        # A sanitizer's runtime is preloaded for Python alone.
        env={name: value for name, value in os.environ.items() if name != "LD_PRELOAD"},
    )  # fmt: skip
    pixels = image.imread(shot)[..., :3]
    paper = np.array([int(background[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    drawn = np.abs(pixels - paper).max(axis=2) > 0.02
    assert 0.05 < drawn.mean() < 0.7  # a picture, and not a page full of it
    contrast = np.abs(pixels - paper).max()
    assert contrast > 0.6  # the text can be read
    colourful = pixels.max(axis=2) - pixels.min(axis=2)
    assert (colourful > 0.1).mean() > 0.02  # domain, halo and current memory
