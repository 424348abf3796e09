from __future__ import annotations

import pytest

from bci.replacing import replacing


def test_the_file_is_replaced_at_the_end(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with replacing(path) as complete:
        complete.write_text("new")
        assert (path.read_text(), complete.name) == ("old", "a.txt")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def half():
        with replacing(path) as complete:
            complete.write_text("ne")
            raise ValueError("full")

    with pytest.raises(ValueError, match="full"):
        half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
