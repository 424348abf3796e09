"""Reading a user's files, and the message for every way in which they can be wrong."""

import numpy as np
import pandas as pd
import pytest

from bci.data.csv_file import csv_file
from bci.errors import InvalidInput

DATA = "a,b,c\n1,2,0.5\n2,1,3\n4,7,-1e1\n"


@pytest.fixture
def write(tmp_path):
    def write_text(text, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return write_text


def edges(dataset):
    return {f"{dataset.names[cause]}>{dataset.names[effect]}" for cause, effect in np.argwhere(dataset.graph)}


@pytest.mark.parametrize(
    "text",
    [
        DATA,
        DATA.replace("\n", "\r\n"),
        "\ufeff" + DATA,
        DATA.rstrip("\n") + "\n\n\n",
        DATA.replace(",", " , "),
        DATA.replace("a,b,c", '"a","b","c"'),
    ],
)
def test_values_are_read_and_standardised(write, text):
    dataset = csv_file(write(text))
    raw = np.array([[1, 2, 0.5], [2, 1, 3], [4, 7, -10]])
    assert dataset.names == ("a", "b", "c")
    np.testing.assert_allclose(dataset.observations, (raw - raw.mean(axis=0)) / raw.std(axis=0, ddof=1))
    assert dataset.graph is None
    assert not dataset.intervened.any()


def test_pandas_agrees_on_random_data(tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 4)), columns=["w", "x y", "z,z", 'q"q'])
    frame.to_csv(tmp_path / "data.csv", index=False)
    dataset = csv_file(tmp_path / "data.csv")
    assert dataset.names == tuple(frame.columns)
    np.testing.assert_allclose(dataset.scaler.inverse(dataset.observations), frame.to_numpy())


@pytest.mark.parametrize(
    "text",
    [
        "a,b,c\n0,1,1\n0,0,1\n0,0,0\n",
        "c,a,b\n0,0,0\n1,0,1\n1,0,0\n",  # other order; rows follow the header
        ",a,b,c\na,0,1,1\nb,0,0,1\nc,0,0,0\n",
        ",a,b,c\nb,0,0,1\nc,0,0,0\na,0,1,1\n",  # rows in an order of their own
        "cause,c,b,a\nb,1,0,0\nc,0,0,0\na,1.0,1.0,0.0\n",
        "a,b\na,c\nb,c\n",
        "cause,effect\nb,c\na,b\na,c\n",
        "from , to\n b , c\na,b\na,c\na,c\n",
        "Source,Target\nb,c\na,b\na,c\n",
        "parent,child\nb,c\na,b\na,c\n",
    ],
)
def test_graph_formats(write, text):
    assert edges(csv_file(write(DATA), write(text, "graph.csv"))) == {"a>b", "a>c", "b>c"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n0,1\n0,0\n", {"a>b"}),
        ("b,a\n0,1\n0,0\n", {"b>a"}),
        (",a,b\nb,1,0\na,0,0\n", {"b>a"}),
        ("b,a\n", {"b>a"}),
        ("cause,effect\na,b\n", {"a>b"}),
        ("cause,effect\n", set()),
        ("a,b\n0,0\n0,0\n", set()),
    ],
)
def test_two_variables_are_not_ambiguous(write, text, expected):
    assert edges(csv_file(write("a,b\n1,2\n2,0\n3,3\n"), write(text, "graph.csv"))) == expected


def test_variables_named_as_a_header_are_variables(write):
    data = write("from,to,c\n1,2,0\n2,0,5\n3,3,1\n")
    assert edges(csv_file(data, write("from,to\nto,c\n", "graph.csv"))) == {"from>to", "to>c"}
    assert edges(csv_file(data, write("source,target\nto,c\n", "graph.csv"))) == {"to>c"}
    with pytest.raises(InvalidInput, match="got 'cause'"):
        csv_file(write("a,effect,c\n1,2,0\n2,0,5\n3,3,1\n"), write("cause,effect\na,c\n", "graph.csv"))


def test_mask_is_reordered_by_name(write):
    dataset = csv_file(write(DATA), intervened_path=write("c,a,b\n0,0,0\n1,0,0\n0,1,0\n", "mask.csv"))
    np.testing.assert_array_equal(dataset.intervened, [[False] * 3, [False, False, True], [True, False, False]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a header row and data, got an empty file"),
        ("\n \n", "expected a header row and data, got an empty file"),
        ("1,2,3\n4,5,6\n7,8,8\n", "line 1: expected a header row of variable names, got numbers"),
        (",a,b\n0,1,2\n1,3,3\n", "line 1: expected a name for every column, got none for column 1"),
        ("a,b,a\n1,2,3\n2,1,1\n", "line 1: expected unique variable names, got 'a' twice"),
        ("a,b\n1,2\n3,x\n", "line 3, column 'b': expected a number, got 'x'"),
        ("a,b\n1,2\n\n1_0,1\n", "line 4, column 'a': expected a number, got '1_0'"),
        ("a,b\n1,2\n,3\n", "line 3, column 'a': expected a number, got a missing value ('')"),
        ("a,b\n1,2\n4,NaN\n", "line 3, column 'b': expected a number, got a missing value ('NaN')"),
        ("a,b\n1,inf\n4,2\n", "line 2, column 'b': expected a finite number, got 'inf'"),
        ("a,b\n1,1e999\n4,2\n", "line 2, column 'b': expected a finite number, got '1e999'"),
        ("a,b\n1,2\n1,3\n", "column 'a': expected values that vary, got a constant"),
        ("a,b,c\n1,2,1\n2,4,5\n0,0,7\n", "columns 'a' and 'b': expected distinct variables"),
        ("a,b\n1,2\n2,1e301\n3,0\n", "column 'b': expected a largest magnitude from 1e-300 to 1e+300, got 1e+301"),
        ("a,b\n1,2\n4,3\n", "observations: expected at least 3 rows"),
        ("a,b\n1,2\n", "expected at least 2 rows, got 1"),
        ("a,b\n", "expected at least 2 rows, got 0"),
        ("a\n1\n2\n", "expected at least 2 columns (variables), got 1"),
        ("a;b\n1;2\n2;1\n", "expected commas between the cells, got ';'"),
        ("a,b\n1,2\n3\n", "line 3: expected 2 comma-separated cells, as in the first row, got 1"),
        ("a,b\n1,2,3\n3,4,5\n", "line 2: expected 2 comma-separated cells, as in the first row, got 3"),
        ('a,b\n1,"2\n3,4\n', "expected comma-separated values, got"),
        (b"\x89PNG\r\n\x1a\n\xff\xfe", "expected text in UTF-8, got other bytes"),
        (b"a,b\n1,2\x00\n3,4\n", "expected text in UTF-8, got a binary file"),
    ],
)
def test_bad_data_are_refused_with_file_and_place(write, text, message):
    path = write(text)
    with pytest.raises(InvalidInput) as caught:
        csv_file(path)
    assert str(caught.value).startswith(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "got an empty file"),
        ("a,b,d\n0,1,1\n0,0,1\n0,0,0\n", "(a, b, c), got unknown 'd', no 'c'"),
        ("a,b,c,d,e\n" + "0,0,0,0,0\n" * 5, "(a, b, c), got unknown 'd', unknown 'e'"),
        (",a,b,c\na,0,1,1\nb,0,0,1\nd,0,0,0\n", "label the rows with the names of the data (a, b, c), got unknown 'd'"),
        (",a,b,c\na,0,1,1\nb,0,0,1\nb,0,0,0\n", "got no 'c'"),
        ("0,1,1\n0,0,1\n0,0,0\n", "expected a header row of variable names, got numbers"),
        ("a,b,c\n0,1,2\n0,0,1\n0,0,0\n", "line 2, column 'c': expected 0 or 1, got '2'"),
        ("a,b,c\n0,1,x\n0,0,1\n0,0,0\n", "line 2, column 'c': expected 0 or 1, got 'x'"),
        ("a,b,c\n0,1,1\n0,0,1\n", "expected 3 rows below the header, one per variable, got 2"),
        ("a,b,c\n0,1\n0,0,1\n0,0,0\n", "line 2: expected 3 comma-separated cells"),
        ("a,b,c\n0,1,0\n0,0,1\n1,0,0\n", "got the cycle a -> b -> c -> a"),
        ("a,b,c\n0,1,0\n0,1,0\n0,0,0\n", "got the cycle b -> b"),
        ("a,b\nb,a\n", "got the cycle"),
        ("a,a\n", "got the cycle a -> a"),
        ("a,b\nb,e\n", "line 2: expected cause,effect from the variables a, b, c, got 'e'"),
        (
            "a,bb\nb,c\n",
            "line 1: expected cause,effect from the variables a, b, c or a header row (cause,effect or from",
        ),
        ("x,zz\na,b\n", "parent,child), got 'x'; correct it"),
        ("from,b\na,b\n", "line 1: expected cause,effect"),
        ("from,effect\na,b\n", "line 1: expected cause,effect"),
        ("cause,effect\na,b,c\n", "line 2: expected 2 comma-separated cells"),
    ],
)
def test_bad_graph_is_refused_with_its_own_file(write, text, message):
    path = write(text, "graph.csv")
    with pytest.raises(InvalidInput) as caught:
        csv_file(write(DATA), path)
    assert str(caught.value).startswith(path)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,c\n0,0,0\n0,0,0\n", "expected 3 rows below the header, as the data, got 2"),
        ("a,b\n0,0\n0,0\n0,0\n", "(a, b, c), got no 'c'"),
        ("a,b,x\n0,0,0\n0,0,0\n0,0,0\n", "got unknown 'x', no 'c'"),
        ("a,b,c\n0,0,0\n0,5,0\n0,0,0\n", "line 3, column 'b': expected 0 or 1, got '5'"),
        ("a,b,c\n0,0,0\n0,0\n0,0,0\n", "line 3: expected 3 comma-separated cells"),
    ],
)
def test_bad_mask_is_refused_with_its_own_file(write, text, message):
    path = write(text, "mask.csv")
    with pytest.raises(InvalidInput) as caught:
        csv_file(write(DATA), intervened_path=path)
    assert str(caught.value).startswith(path)
    assert message in str(caught.value)


def test_missing_file_and_directory_are_reported(tmp_path, write):
    with pytest.raises(InvalidInput, match=r"nowhere\.csv: expected a CSV file, got no such file"):
        csv_file(tmp_path / "nowhere.csv")
    with pytest.raises(InvalidInput, match="got a directory"):
        csv_file(tmp_path)
    with pytest.raises(InvalidInput, match=r"graph\.csv: expected a CSV file, got no such file"):
        csv_file(write(DATA), tmp_path / "graph.csv")
