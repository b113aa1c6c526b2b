"""The library's tests. pyproject.toml adds the rules of array exchange as tests."""

# [fixture]
from image import Image


def test_a_small_image_is_what_it_says(gridbuf_check):
    gridbuf_check(Image(3, 5))


# [/fixture]


def test_rows_are_where_they_belong():
    image = Image(2, 3)
    image.set_row(1, b"abc")
    assert image._memory[16:19] == b"abc"
