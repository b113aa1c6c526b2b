"""The page of array functions is the table that storages answer by."""

import array_functions


def test_the_page_is_the_table() -> None:
    assert array_functions.PAGE.read_text("utf-8") == array_functions.page(), (
        "run array_functions.py"
    )
