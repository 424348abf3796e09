from __future__ import annotations

from bci.counting import counted, reporting


def test_a_report_comes_before_each_item_and_nothing_is_drawn(capsys):
    told = []
    with reporting(lambda *told_of: told.append(told_of)):
        for item in counted("ab", "letters", "letter"):
            told.append(item)
    assert told == [("letters", 0, 2), "a", ("letters", 1, 2), "b"]
    assert capsys.readouterr() == ("", "")


def test_without_a_report_all_items_come_and_a_file_gets_no_bar(capsys):
    assert list(counted(range(3), "numbers", "number")) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")
