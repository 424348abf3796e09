"""The page in a real browser: needs chromium and chromedriver."""

from __future__ import annotations

import json
import shutil

import pytest
from published_folders import publish

from experiments.html_report import write_report

webdriver = pytest.importorskip("selenium.webdriver")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium or chromedriver is not installed"),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    root = tmp_path_factory.mktemp("page")
    write_report(root / "report.html", *publish(root))
    return (root / "report.html").as_uri()


@pytest.fixture
def open_page(browser, address):
    """Open the page in a window of this size."""

    def opened(width=1280, height=900):
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get_log("browser"), browser.get_log("performance")
        browser.get(address)
        return browser

    return opened


def column(browser, table, number):
    rows = "[...document.querySelectorAll('table')[arguments[0]].tBodies[0].rows]"
    script = f"return {rows}.map(row => row.cells[arguments[1]].dataset.value)"
    return browser.execute_script(script, table, number)


def header(browser, table, number):
    return browser.find_elements("tag name", "table")[table].find_elements("css selector", "thead th")[number]


def test_the_page_loads_without_an_error_and_without_the_network(open_page, address):
    browser = open_page()
    assert browser.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [each["params"]["request"]["url"] for each in messages if each["method"] == "Network.requestWillBeSent"]
    assert asked[0] == address
    assert all(url.startswith("data:") for url in asked[1:])
    complete = "return [...document.images].every(image => image.complete && image.naturalWidth > 0)"
    assert browser.execute_script(complete)
    assert (
        browser.find_element("css selector", ".scroll").value_of_css_property("overflow-x") == "auto"
    )  # has its style


def test_a_click_on_a_header_sorts_and_a_second_one_turns_it(open_page):
    browser = open_page()
    assert column(browser, 1, 1) == ["9.5", "100.26", ""]
    header(browser, 1, 1).find_element("tag name", "button").click()
    assert header(browser, 1, 1).get_attribute("aria-sort") == "ascending"
    assert column(browser, 1, 1) == ["9.5", "100.26", ""]
    header(browser, 1, 1).find_element("tag name", "button").click()
    assert header(browser, 1, 1).get_attribute("aria-sort") == "descending"
    assert column(browser, 1, 1) == ["100.26", "9.5", ""]
    header(browser, 1, 0).find_element("tag name", "button").click()
    assert header(browser, 1, 1).get_attribute("aria-sort") == "none"
    assert column(browser, 1, 0)[1:] == ["ARCO-GP", "GES"]


def test_headers_sort_numbers_as_such_from_the_keyboard(open_page):
    browser = open_page()
    button = header(browser, 3, 2).find_element("tag name", "button")
    button.send_keys("\ue007")
    button.send_keys(" ")
    assert column(browser, 3, 2) == ["0.25", "0.125", "-1.5"]
    assert header(browser, 3, 2).get_attribute("aria-sort") == "descending"


def test_on_a_phone_tables_scroll_and_the_page_does_not(open_page):
    browser = open_page(360, 740)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 360
    wide = browser.find_elements("css selector", ".scroll")[-1]
    assert browser.execute_script("return arguments[0].scrollWidth > arguments[0].clientWidth", wide)
    before = wide.find_element("css selector", "tbody th").rect["x"]
    browser.execute_script("arguments[0].scrollLeft = 400", wide)
    assert wide.find_element("css selector", "tbody th").rect["x"] == before
    assert wide.find_element("css selector", "tbody td").rect["x"] < before


def test_headers_are_large_enough_to_touch(open_page):
    browser = open_page(360, 740)
    assert all(each.rect["height"] >= 44 for each in browser.find_elements("css selector", "thead button"))
