"""The built site in Chromium, from the file system: whole, searchable, and usable by keyboard."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from experiments.catalogue import SCRIPTS
from experiments.engine.figures import Folders
from experiments.engine.script import load
from experiments.guide.build import build_site
from experiments.theorems import THEOREMS
from geomdp.cli.app import all_lessons
from tests.experiments.chromium import headless_chromium
from tests.readme import PAGES as WRITTEN

pytestmark = pytest.mark.slow
#: At least one page of each kind. The pages include formulas, wide tables, pictures and the chart
#: of the page "Choose a mechanism".
PAGES = (
    "index.html", "lessons.html", "lesson_00.html", "lesson_05.html", "guide.html",
    "readers/data_owner.html", "readers/researcher.html", "readers/teacher.html", "use/choose.html",
    "use/how_many.html", "use/command_line.html", "use/larger.html", "privacy/record.html",
    "privacy/exact.html", "privacy/threat_model.html", "gallery/index.html", "gallery/behind.html",
    "gallery/nikolov.html", "gallery/JL-L13b.html", "figures/index.html",
    "figures/jl_error_vs_n.html", "reference/geomdp.bodies.html",
    "reference/geomdp.mechanisms.KNorm.html", "reference/geomdp.tabulation.release.html",
    "more/extend.html", "search.html",
)  # fmt: skip
#: Widths of a phone and of a screen, in pixels, and the pages to open.
PHONE, SCREEN = 375, 1400
ALL = (
    *PAGES,
    *(f"{page.relative_to(WRITTEN).with_suffix('')}.html" for page in WRITTEN.rglob("*.md")),
    *(f"lesson_{lesson.number:02}.html" for lesson in all_lessons()),
    *(f"gallery/{theorem.id}.html" for theorem in THEOREMS),
    *(f"figures/{name.rpartition('.')[2]}.html" for name in SCRIPTS),
)
#: Most bytes of the site.
SIZE = 60_000_000
#: Script that reports the faults of the open page. It first makes the browser load all pictures,
#: because by default pictures outside the window may load later.
PROBE = """
const done = arguments[arguments.length - 1];
const pictures = [...document.querySelectorAll("article img")];
pictures.forEach((picture) => (picture.loading = "eager"));
Promise.allSettled(pictures.map((picture) => picture.decode())).then(() => done({
  // The theme lets the whole article scroll where something in it is too wide.
  wide: Math.max(...[...document.querySelectorAll("html, .bd-article-container")]
    .map((box) => box.scrollWidth - box.clientWidth)),
  undrawn: pictures.filter((picture) => !picture.naturalWidth).map((picture) => picture.src),
  tiny: pictures.filter((picture) => picture.getBoundingClientRect().width < 200).length,
  raw: [...document.querySelectorAll("article p")].filter(
    (text) => /\\\\\\(|\\$\\$|:(ref|doc|py:obj):`/.test(text.textContent)).length,
  remote: performance.getEntriesByType("resource").map((entry) => entry.name)
    .filter((name) => !name.startsWith(arguments[0]) && !name.startsWith("data:")),
}));
"""
#: Script that returns what is visible and can be followed, pressed or opened.
USABLE = """
return [...document.querySelectorAll("a[href], button, summary, input, select")].filter((part) =>
  part.checkVisibility({visibilityProperty: true, opacityProperty: true}) && !part.disabled
  && part.getClientRects().length);
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    scripts = [load(name) for name in SCRIPTS]
    build_site(scripts, folder / "site", Folders(), folder / "work")
    return folder / "site"


@pytest.fixture
def chrome() -> Iterator[Chrome]:
    with headless_chromium() as browser:
        yield browser


def resize(chrome: Chrome, width: int) -> None:
    """Emulate the size of the page: a window of Chromium cannot be as narrow as a phone.

    A phone would zoom out to show a page that is too wide, so that no test could see it.
    """
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def faults(chrome: Chrome) -> list[str]:
    """The lines of the console, without those in which the theme says what it does."""
    lines = [entry["message"] for entry in chrome.get_log("browser")]
    return [line for line in lines if '"[PST]: ' not in line]


@pytest.mark.parametrize(("width", "pages"), [(PHONE, ALL), (SCREEN, PAGES)])
def test_pages_fit_and_load_nothing_from_elsewhere(site, chrome, width, pages):
    resize(chrome, width)
    for page in pages:
        chrome.get((site / page).as_uri())
        seen = chrome.execute_async_script(PROBE, site.as_uri())
        assert seen == {"wide": 0, "undrawn": [], "tiny": 0, "raw": 0, "remote": []}, page
        assert faults(chrome) == [], page


def test_the_site_is_small(site):
    assert sum(path.stat().st_size for path in site.rglob("*") if path.is_file()) < SIZE


@pytest.mark.parametrize(("words", "found"), [
    ("wishart difference", "gallery/JL-WIS.html"),
    ("JL-T21", "gallery/JL-T21.html"),
    ("recursive noise boxes", "figures/recursive_noise.html"),
    ("scheduler", "use/larger.html"),
    ("smoking triangle", "lesson_01.html"),
    ("TightCone", "reference/geomdp.mechanisms.TightCone.html"),
])  # fmt: skip
def test_the_search_finds_pages_of_every_kind(site, chrome, words, found):
    resize(chrome, SCREEN)
    chrome.get((site / "privacy" / "proof.html").as_uri())
    chrome.find_element(By.TAG_NAME, "body").send_keys(Keys.CONTROL, "k")
    chrome.switch_to.active_element.send_keys(words, Keys.ENTER)
    results = "#search-results a"
    WebDriverWait(chrome, 30).until(
        lambda _: any(
            found in (link.get_attribute("href") or "")
            for link in chrome.find_elements(By.CSS_SELECTOR, results)
        )
    )
    assert faults(chrome) == []


@pytest.mark.parametrize("width", [PHONE, SCREEN])
@pytest.mark.parametrize("page", ["index.html", "gallery/JL-T1.html", "figures/jl_rates.html"])
def test_the_keyboard_reaches_everything(site, chrome, page, width):
    resize(chrome, width)
    chrome.get((site / page).as_uri())
    usable = chrome.execute_script(USABLE)
    reached = set()
    for _ in range(len(usable) + 20):
        chrome.switch_to.active_element.send_keys(Keys.TAB)
        reached.add(chrome.switch_to.active_element)
    assert len(usable) > 5
    missed = [part for part in usable if part not in reached]
    assert [part.get_attribute("outerHTML") for part in missed] == []


def test_a_chart_opens_by_keyboard_and_says_its_values(site, chrome):
    resize(chrome, PHONE)
    chrome.get((site / "figures" / "recursive_noise.html").as_uri())
    chrome.find_element(By.CSS_SELECTOR, ".chart summary").send_keys(Keys.ENTER)
    plots = chrome.find_elements(By.CSS_SELECTOR, ".plot svg")
    assert len(plots) == len(chrome.find_elements(By.CSS_SELECTOR, ".plot")) > 0
    for plot in plots:
        assert plot.find_elements(By.CSS_SELECTOR, "path, circle")
        plot.send_keys(Keys.ARROW_RIGHT)
        assert "x = " in chrome.find_element(By.CLASS_NAME, "readout").text
    for button in chrome.find_elements(By.CSS_SELECTOR, ".scales button"):
        button.send_keys(Keys.SPACE)
    broken = "return [...document.querySelectorAll('.plot svg *')].filter((part) =>"
    broken += (
        " [...part.attributes].some((one) => /NaN|Infinity|undefined/.test(one.value))).length"
    )
    assert chrome.execute_script(broken) == 0
    assert faults(chrome) == []


def test_without_javascript_the_text_stands(site, chrome):
    resize(chrome, SCREEN)
    chrome.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    for page in PAGES[:-1]:
        chrome.get((site / page).as_uri())
        article = chrome.find_element(By.TAG_NAME, "article")
        assert article.is_displayed(), page
        assert len(article.text) > 200, page
        links = chrome.find_elements(By.CSS_SELECTOR, "header a")
        assert [link.text for link in links if link.is_displayed()][1:] == [
            *("Gallery", "Lessons", "Guide", "API")
        ], page
        assert not [part for part in chrome.find_elements(By.CLASS_NAME, "chart") if part.text]
