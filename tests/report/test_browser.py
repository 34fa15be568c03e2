"""The page in a real browser."""

import base64
import csv
import io
import json
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from structent import SpanningTreePartitions, hierarchy
from structent.structure import catalog
from structent.studies.comparison import KeptModel
from structent.studies.verdict import Verdict
from tests.plots.contrast import contrast
from tests.report.test_page import HOSTILE, SECTIONS
from tests.studies.made import made_comparison

pytestmark = [
    pytest.mark.slow,
    pytest.mark.requires("chromium"),
    pytest.mark.requires("selenium"),
]

COMMAND = (
    "structent compare 'weather of Seattle.csv' --target month --structure circular:width=3 "
    "--features precipitation,temp_max,temp_min,wind --group station --report months.html"
)
FORMULAS = hierarchy(
    {'=HYPERLINK("x")': ("a",), "+1": ("a",), "@sum, of": ("b",), "two\nlines": ("b",)}
)
STRUCTURES = {
    "months": catalog.months(),
    "cifar100": catalog.cifar100(),
    "counties": SpanningTreePartitions(catalog.california_counties(), 10, 0.5),
    "hostile": HOSTILE,
    "formulas": FORMULAS,
}


UNDECIDED = Verdict(
    "undecided",
    "too few rows",
    "Undecided: the structure lowers log loss by 0.008 ± 0.006 (95 %), but whether by more than "
    "scrambled copies of it is not clear (-0.004 ± 0.018). A gain of 0.025 would have been found.",
    0.025,
)


@pytest.fixture(scope="module")
def driver():
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    # In a container Chromium runs as root, which its sandbox does not allow, and /dev/shm is small.
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=shutil.which("chromedriver"))
    driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    for name, structure in STRUCTURES.items():
        comparison = made_comparison(structure, learning_curve=True)
        comparison.to_html(
            folder / f"{name}.html", data="weather.csv", target="month",
            kept=KeptModel("model.structent", "Trained on all 600 rows."), command=COMMAND,
        )  # fmt: skip
    undecided = replace(
        made_comparison(catalog.months(), reduced=("3 of 10 splits are missing",)),
        verdict=UNDECIDED,
    )
    cautions = ("Left out: 'season' (it gives the label away)", "To keep it: --keep season")
    undecided.to_html(
        folder / "undecided.html", data="weather.csv", target="month", command=COMMAND,
        structure_name="circular:width=3", cautions=cautions,
    )  # fmt: skip
    names = [*STRUCTURES, "undecided"]
    return {name: (folder / f"{name}.html").as_uri() for name in names}


@pytest.fixture(params=STRUCTURES)
def page(driver, addresses, request):
    return opened(driver, addresses[request.param])


@pytest.fixture
def months(driver, addresses):
    return opened(driver, addresses["months"])


def opened(driver, address):
    from selenium.webdriver.support.ui import WebDriverWait

    show(driver, width=1200, scheme="light")
    driver.get(address)
    # On a busy machine the driver may come back while the end of a long page is still being read.
    state = "return document.readyState"
    WebDriverWait(driver, 60).until(lambda shown: shown.execute_script(state) == "complete")
    return driver


def show(driver, width, scheme):
    screen = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)


def found(driver, selector):
    return driver.find_elements("css selector", selector)


def column(driver, number):
    cells = found(driver, f"#levels table:first-of-type tbody tr > :nth-child({number})")
    return [cell.get_attribute("data-value") for cell in cells][:6]


def heading(driver, number):
    return found(driver, f"#levels thead th:nth-child({number})")[0]


def test_nothing_is_logged(page):
    page.get_log("browser")
    page.refresh()
    assert page.get_log("browser") == []


def test_nothing_is_asked_of_the_network(page):
    entries = "return performance.getEntriesByType('resource').map(e => e.name)"
    assert [name for name in page.execute_script(entries) if not name.startswith("data:")] == []


def test_every_section_is_seen(page):
    sections = found(page, "main section")
    expected = [*SECTIONS[:6], "learning-curve", SECTIONS[6], "model", *SECTIONS[7:]]
    assert [section.get_attribute("id") for section in sections] == expected
    assert all(section.is_displayed() and section.size["height"] > 100 for section in sections)


def test_there_is_one_heading_of_the_first_level(page):
    assert len(found(page, "h1")) == 1


def test_every_figure_has_a_label_and_a_size(page):
    figures = found(page, "svg")
    assert len(figures) >= 6
    for svg in figures:
        assert svg.aria_role in ("img", "image")
        assert svg.accessible_name
        assert min(svg.size["width"], svg.size["height"]) > 100


@pytest.mark.parametrize("width", [390, 768, 1200])
def test_the_page_never_scrolls_sideways(page, width):
    show(page, width=width, scheme="light")
    assert page.execute_script("return document.documentElement.scrollWidth") <= width


def test_text_stays_inside_its_figure(page):
    script = """
      return Array.from(document.querySelectorAll("svg text")).filter((text) => {
        const box = text.getBoundingClientRect();
        const frame = text.closest("svg").getBoundingClientRect();
        return box.left < frame.left - 1 || box.right > frame.right + 1
          || box.top < frame.top - 1 || box.bottom > frame.bottom + 1;
      }).map((text) => text.textContent)"""
    assert page.execute_script(script) == []


def test_a_click_sorts_by_value_up_and_then_down(months):
    before = column(months, 3)
    assert before != sorted(before, key=float)
    heading(months, 3).find_element("css selector", "button").click()
    assert column(months, 3) == sorted(before, key=float)
    assert heading(months, 3).get_attribute("aria-sort") == "ascending"
    heading(months, 3).find_element("css selector", "button").click()
    assert column(months, 3) == sorted(before, key=float, reverse=True)
    assert heading(months, 3).get_attribute("aria-sort") == "descending"


def test_the_keyboard_sorts_too_and_only_one_column_at_a_time(months):
    for number, key in ((4, "\ue007"), (2, " ")):  # Enter, and the space bar
        heading(months, number).find_element("css selector", "button").send_keys(key)
        assert heading(months, number).get_attribute("aria-sort") == "ascending"
    assert heading(months, 4).get_attribute("aria-sort") is None
    assert column(months, 2) == sorted(column(months, 2))


def test_the_skip_link_is_the_first_stop_of_the_keyboard_and_is_seen_there(months):
    found(months, "body")[0].send_keys("\ue004")  # Tab
    link = months.switch_to.active_element
    assert link.text == "Skip to the report"
    assert link.location["x"] >= 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_and_its_figures_follow_the_scheme_with_enough_contrast(months, scheme):
    show(months, width=1200, scheme=scheme)
    colours = """
      const of = (element, name) =>
        getComputedStyle(element)[name].match(/[\\d.]+/g).map((v) => v / 255);
      return [of(document.body, "backgroundColor"), of(document.body, "color"),
              of(document.querySelector("svg text"), "fill"),
              of(document.querySelector("caption"), "color"),
              of(document.querySelector("nav a"), "color"),
              of(document.querySelector(".verdict strong"), "color"),
              of(document.querySelector(".tools button"), "color"),
              of(document.querySelector("figcaption"), "color")]"""
    page, *inks = months.execute_script(colours)
    assert (max(page) < 0.2) == (scheme == "dark")
    assert min(contrast(page, ink) for ink in inks) >= 4.5  # WCAG 2, 1.4.3


# The first screen, and what the page can do


@pytest.mark.parametrize("name", ["months", "undecided"])
def test_the_answer_is_all_on_the_first_screen(driver, addresses, name):
    opened(driver, addresses[name])
    show(driver, width=1280, scheme="light")
    header = found(driver, "header")[0]
    assert header.rect["y"] + header.rect["height"] <= 800
    for part in ("h1", ".verdict", "svg", "pre", ".aside"):
        assert found(driver, f"header {part}")


def test_the_contents_stay_in_view_and_tell_where_the_reader_is(months):
    show(months, width=1280, scheme="light")
    found(months, "nav a[href='#reliability']")[0].click()
    top = "return document.querySelector('nav').getBoundingClientRect().top"
    wait_until(months, f"{top.replace('return ', 'return 0 <= ')} && scrollY > 500")
    assert 0 <= months.execute_script(top) < 100
    current = "return document.querySelector('nav [aria-current]')?.hash === '#reliability'"
    wait_until(months, current)


def test_on_a_phone_the_contents_are_one_line(months):
    show(months, width=390, scheme="light")
    months.execute_script("document.getElementById('mistakes').scrollIntoView()")
    nav = months.execute_script("""
      const box = document.querySelector("nav").getBoundingClientRect();
      return [box.top, box.height]""")
    assert nav[0] == pytest.approx(0, abs=1)
    assert nav[1] < 60


def test_a_section_folds_and_its_link_opens_it(months):
    details = "return document.querySelector('#levels > details').open"
    found(months, "#levels > details > summary")[0].click()
    assert months.execute_script(details) is False
    found(months, "nav a[href='#levels']")[0].click()
    assert months.execute_script(details) is True


def test_all_sections_fold_and_unfold_at_once(months):
    is_open = "return [...document.querySelectorAll('section > details')].map(each => each.open)"
    button = found(months, "button[data-fold]")[0]
    for state in (False, True):
        button.click()
        assert set(months.execute_script(is_open)) == {state}


def test_all_is_open_in_print(months):
    found(months, "button[data-fold]")[0].click()
    pages = months.execute_cdp_cmd("Page.printToPDF", {})
    assert base64.b64decode(pages["data"]).startswith(b"%PDF")
    is_open = "return [...document.querySelectorAll('details')].every(each => each.open)"
    assert months.execute_script(is_open)


def test_numbers_are_shown_on_hover(page):
    for figure in ("header", "#differences", "#confusion", "#reliability", "#learning-curve"):
        tips = f"return document.querySelectorAll('{figure} .tips rect > title').length"
        assert page.execute_script(tips) >= 2
    under = """
      const dot = document.querySelector("#learning-curve .tips rect");
      dot.scrollIntoView({ block: "center" });
      const box = dot.getBoundingClientRect();
      const x = box.x + box.width / 2, y = box.y + box.height / 2;
      return document.elementFromPoint(x, y).closest("rect").querySelector("title").textContent"""
    assert page.execute_script(under).startswith("100 rows, no structure: ")


def test_a_tap_writes_the_numbers_below_the_figure(months):
    for place in (0, 2):
        months.execute_script(
            "document.querySelectorAll('#learning-curve .tips rect')[arguments[0]]"
            ".dispatchEvent(new MouseEvent('click', { bubbles: true }))",
            place,
        )
    (told,) = found(months, "#learning-curve figcaption output")
    assert told.text.startswith("400 rows, no structure: ")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_line_of_a_figure_strikes_a_text_through(months, scheme):
    show(months, width=1200, scheme=scheme)
    halo = """
      const of = (element) => getComputedStyle(element);
      return [...document.querySelectorAll("figure")].every((figure) =>
        [...figure.querySelectorAll("svg text")].every((text) =>
          of(text).paintOrder.startsWith("stroke")
            && of(text).stroke === of(figure).backgroundColor))"""
    assert months.execute_script(halo)


def test_texts_of_a_figure_do_not_lie_over_each_other(page):
    script = """
      const over = [];
      for (const svg of document.querySelectorAll("svg")) {
        const texts = [...svg.querySelectorAll("text")].filter((text) => text.textContent.trim());
        const boxes = texts.map((text) => text.getBoundingClientRect());
        for (let i = 0; i < texts.length; i++) for (let j = 0; j < i; j++) {
          const a = boxes[i], b = boxes[j];
          const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
          const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
          if (wide > 2 && high > 0.4 * Math.min(a.height, b.height, a.width, b.width)) {
            over.push([texts[i].textContent, texts[j].textContent]);
          }
        }
      }
      return over"""
    assert page.execute_script(script) == []


def test_code_is_copied(months):
    permissions = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    months.execute_cdp_cmd("Browser.grantPermissions", permissions)
    (again,) = [each for each in found(months, ".aside .code") if "compare" in each.text]
    again.find_element("css selector", "button").click()
    label = "return [...document.querySelectorAll('.code button')].map(each => each.textContent)"
    wait_until(months, f"{label}.includes('Copied')")
    copied = months.execute_async_script(
        "navigator.clipboard.readText().then(arguments[arguments.length - 1])"
    )
    assert copied == COMMAND


def downloaded(driver, selector, folder):
    driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)}
    )
    driver.execute_script("document.querySelector(arguments[0]).click()", selector)
    until = time.monotonic() + 30
    while time.monotonic() < until:
        files = [path for path in Path(folder).iterdir() if path.suffix in (".csv", ".json")]
        if files:
            return files[0].name, files[0].read_bytes().decode()
        time.sleep(0.1)
    raise AssertionError(f"{selector} gave no file")


def test_a_table_is_downloaded_as_csv_with_all_digits(months, tmp_path):
    name, text = downloaded(months, "button[data-csv=scores]", tmp_path)
    assert name == "scores.csv"
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows[0][:4] == [
        "Level",
        "Model",
        "Log loss (nats)",
        "Log loss (nats), standard deviation",
    ]
    comparison = made_comparison(catalog.months(), learning_curve=True)
    losses = comparison.scores["none"].by_level[:, 0, 0]
    assert [float(cell) for cell in rows[1][2:4]] == pytest.approx(
        [losses.mean(), losses.std(ddof=1)], rel=1e-12
    )
    assert len(rows) == 7


def test_names_in_a_csv_are_quoted_and_never_formulas(driver, addresses, tmp_path):
    opened(driver, addresses["formulas"])
    _, text = downloaded(driver, "button[data-csv=confusions]", tmp_path)
    _, *rows = csv.reader(io.StringIO(text, newline=""))
    assert {name for row in rows for name in row[:2]} == {
        "'=HYPERLINK(\"x\")", "'+1", "'@sum, of", "two\nlines",
    }  # fmt: skip
    assert any(int(row[4]) < 0 for row in rows)  # a number below 0 is no formula


def test_the_whole_result_is_downloaded_as_json(page, tmp_path):
    name, text = downloaded(page, "button[data-json]", tmp_path)
    assert name == "structent-result.json"
    result = json.loads(text)
    assert result["command"] == COMMAND
    assert result["verdict"]["finding"] == "use it"
    assert len(result["classes"]) >= 4


def wait_until(driver, script):
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(driver, 30).until(lambda shown: shown.execute_script(script))
