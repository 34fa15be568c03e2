"""The page in a real browser."""

import shutil

import pytest

from structent import SpanningTreePartitions
from structent.structure import catalog
from structent.studies.comparison import KeptModel
from tests.plots.contrast import contrast
from tests.report.test_page import HOSTILE, SECTIONS
from tests.studies.made import made_comparison

pytestmark = [
    pytest.mark.slow,
    pytest.mark.requires("chromium"),
    pytest.mark.requires("selenium"),
]

STRUCTURES = {
    "months": catalog.months(),
    "cifar100": catalog.cifar100(),
    "counties": SpanningTreePartitions(catalog.california_counties(), 10, 0.5),
    "hostile": HOSTILE,
}


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
            kept=KeptModel("model.structent", "Trained on all 600 rows."),
        )  # fmt: skip
    return {name: (folder / f"{name}.html").as_uri() for name in STRUCTURES}


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
    expected = [*SECTIONS[:5], "learning-curve", *SECTIONS[5:], "model"]
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
              of(document.querySelector("nav a"), "color")]"""
    page, *inks = months.execute_script(colours)
    assert (max(page) < 0.2) == (scheme == "dark")
    assert min(contrast(page, ink) for ink in inks) >= 4.5  # WCAG 2, 1.4.3
