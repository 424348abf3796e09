from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest
from published_folders import EVIL, HEADER, ROWS, publish, write_table

from experiments.html_report import main

VOID = {"meta", "link", "img"}


class Page(HTMLParser):
    """Elements as (tag, attributes, text inside); fails on a tag that is not closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        element = [tag, dict(attrs), ""]
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        for element in self.open:
            element[2] += data

    def all(self, tag, **attributes):
        return [e for e in self.elements if e[0] == tag and all(e[1].get(k) == v for k, v in attributes.items())]


@pytest.fixture
def build(tmp_path, capsys):
    tables, figures = publish(tmp_path)
    out = tmp_path / "report.html"

    def built():
        assert main([f"out={out}", f"tables={tables}", f"figures={figures}"]) == 0
        assert capsys.readouterr().out == f"2 tables and 2 figures in {out}\n"
        return out.read_text(encoding="utf-8")

    return built


def cells(page):
    return [(cell[1]["data-value"], cell[2]) for cell in page.all("td")]


def test_a_cell_says_ours_the_printed_number_their_mark_and_of_how_many_models(build):
    found = [text for _, text in cells(Page(build()))]
    assert "9.50 ± 1.25paper 10 ± 2≈ overlapsn = 20" in found
    assert "0.12 ± 0.01paper 0.2 ± 0.02▲ bettern = 20" in found
    assert "100.3 ± 3.0paper 90 ± 2▼ worsen = 18, 2 failed" in found
    assert "not printedn = 18, 2 failed, 18 undefined" in found
    assert "paper 33 ± 4∅ not computed" in found
    assert "-1.50n = 1" in found


def test_cells_sort_by_the_mean_here_and_those_without_one_by_nothing(build):
    values = {text[:6]: value for value, text in cells(Page(build()))}
    assert values["9.50 ±"] == "9.5"
    assert values["paper "] == ""
    assert values["not pr"] == ""


def test_groups_and_tables_have_headings(build):
    page = Page(build())
    assert [heading[2] for heading in page.all("h3")] == [
        "Erdős-Rényi graphs, N = 100",
        "Scale-free graphs, N = 100",
        "Erdős-Rényi graphs, N = 200",
    ]
    assert [h[2] for h in page.all("h2")][1:] == ["A figure", "plain", "degree 4", f"Wide {EVIL}"]
    targets = {element[1]["id"] for element in page.elements if "id" in element[1]}
    links = [link[1]["href"] for link in page.all("a")]
    assert links
    assert {link.removeprefix("#") for link in links} <= targets


def test_the_overview_counts_the_marks_of_printed_cells(build, tmp_path):
    rows = [[cell[2] for cell in page_row] for page_row in overview(Page(build()))]
    assert rows == [["1", "1", "1", "0", "1"], ["36", "0", "0", "0", "0"]]
    with (tmp_path / "tables" / "degree_4" / "degree_4.csv").open("a") as file:
        file.write("ER,100,exact_gp,ESHD,,,0,0,0,,,not computed\nER,100,GES,#Edges,9,1,20,0,0,19,1,differs\n")
    assert [cell[2] for cell in overview(Page(build()))[0]] == ["1", "1", "1", "1", "1"]


def overview(page):
    data = page.all("td")[:10]
    return [data[:5], data[5:]]


def test_what_comes_from_files_is_escaped(build):
    text = build()
    page = Page(text)
    assert len(page.all("script")) == 1
    assert EVIL not in text
    assert [caption[2] for caption in page.all("figcaption")] == [f"Caption {EVIL} Also in main_cd.pdf.", "plain"]
    assert page.all("th", **{"data-value": EVIL, "scope": "row"})
    assert any(f"A note {EVIL}" == paragraph[2] for paragraph in page.all("p"))


def test_figures_are_inside_with_a_text_for_those_who_do_not_see_them(build, tmp_path):
    first, second = Page(build()).all("img")
    assert first[1]["alt"] == 'Alt "text"'
    assert second[1]["alt"] == "plain"
    png = (tmp_path / "figures" / "main_cd.png").read_bytes()
    assert base64.b64decode(first[1]["src"].removeprefix("data:image/png;base64,")) == png


def test_a_manifest_is_shown(build):
    page = Page(build())
    assert [name[2] for name in page.all("dt")][1:3] == ["store version", "git commits"]
    assert [value[2] for value in page.all("dd")][1:3] == ["7", "abc"]
    assert '"a": [' in page.all("pre")[1][2]


def test_the_policy_allows_nothing_but_what_is_inside(build):
    page = Page(build())
    (policy,) = (meta[1]["content"] for meta in page.all("meta") if meta[1].get("http-equiv"))
    assert policy.startswith("default-src 'none'; img-src data:;")
    for tag in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(page.all(tag)[0][2].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    addresses = [e[1][key] for e in page.elements for key in ("src", "href") if key in e[1]]
    assert all(re.match(r"#|data:", address) for address in addresses)


def test_the_same_files_give_the_same_page(build):
    assert build() == build()


def test_what_cannot_be_shown_is_one_line(tmp_path, capsys):
    def report(header=HEADER, rows=ROWS, manifest=None, name="t"):
        folder = tmp_path / name
        write_table(folder, "t", rows, {}, header)
        if manifest is not None:
            (folder / "t" / "manifest.json").write_text(manifest)
        return [f"tables={folder}", f"out={tmp_path / 'r.html'}", f"figures={tmp_path / 'none'}"]

    (tmp_path / "file").write_text("")
    (tmp_path / "none").mkdir()
    for arguments, message in [
        (report(HEADER[:-1], [], name="a"), "expected a published table or figure, got another file (no column mark)"),
        (report(rows=[ROWS[0][:-1]], name="b"), "line 2 has 11 cells, not 12"),
        (report(rows=[ROWS[0], ROWS[0]], name="c"), "line 3 has ESHD of ARCO-GP a second time"),
        (report(rows=[[*ROWS[0][:4], "x", *ROWS[0][5:]]], name="d"), "line 2: could not convert"),
        (report(manifest="{", name="e"), "manifest.json: expected a published table"),
        (report(manifest="[]", name="f"), "(not an object); build it again"),
        ([f"tables={tmp_path / 'file'}"], "tables: expected a folder, got the file"),
        (
            [f"tables={tmp_path / 'none'}", f"figures={tmp_path / 'none'}"],
            "expected published tables or figures, got none",
        ),
        (["out=a.txt"], "out: expected a file that ends in .html, got 'a.txt'"),
        (["page=a"], "command line: expected out=..., tables=..., figures=..., got 'page=a'"),
        (
            [report(name="g")[0], "out=/proc/a.html", f"figures={tmp_path / 'none'}"],
            "out: expected a place that can be written",
        ),
    ]:
        capsys.readouterr()
        assert main(arguments) == 2, arguments
        err = capsys.readouterr().err
        assert err.startswith("error: ")
        assert message in err
        assert len(err.splitlines()) == 1


def test_help_tells_the_usage(capsys):
    assert main(["-h"]) == 0
    assert "figures=DIR" in capsys.readouterr().out


@pytest.mark.parametrize("key", ["tables", "figures"])
def test_a_folder_that_is_not_there_is_one_line_and_leaves_the_page_alone(tmp_path, capsys, key):
    tables, figures = publish(tmp_path)
    (tmp_path / "report.html").write_text("old")
    folders = {"tables": tables, "figures": figures, key: "nonexist"}
    assert main([f"out={tmp_path / 'report.html'}", *(f"{name}={folder}" for name, folder in folders.items())]) == 2
    line = f"error: {key}: expected a folder, got 'nonexist' (no such folder); check the path\n"
    assert capsys.readouterr() == ("", line)
    assert (tmp_path / "report.html").read_text() == "old"
