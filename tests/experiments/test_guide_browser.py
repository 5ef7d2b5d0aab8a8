"""The built guide in Chromium: no errors, all pages fit the window, and all pictures are drawn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver import Chrome

from experiments.catalogue import SCRIPTS
from experiments.engine.figures import Folders
from experiments.engine.script import load
from experiments.guide.build import build_guide
from tests.experiments.chromium import headless_chromium

#: At least one page of each kind. The pages include formulas, wide tables, pictures and the chart
#: of the page "Choose a mechanism".
PAGES = (
    "index.html",
    "readers/data_owner.html",
    "readers/researcher.html",
    "readers/teacher.html",
    "use/choose.html",
    "use/how_many.html",
    "use/command_line.html",
    "privacy/record.html",
    "privacy/exact.html",
    "privacy/threat_model.html",
    "gallery/index.html",
    "gallery/error.html",
    "theorems/nikolov.html",
    "reference/geomdp.bodies.html",
    "reference/geomdp.mechanisms.KNorm.html",
    "reference/geomdp.tabulation.release.html",
    "more/extend.html",
)
#: Width of a phone and of a screen, in pixels.
WIDTHS = (400, 1400)
#: Script that reports the faults of the open page. It first makes the browser load all pictures,
#: because by default pictures outside the window may load later.
PROBE = """
const done = arguments[arguments.length - 1];
const pictures = [...document.querySelectorAll("article img")];
pictures.forEach((picture) => (picture.loading = "eager"));
Promise.allSettled(pictures.map((picture) => picture.decode())).then(() => done({
  wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  undrawn: pictures.filter((picture) => !picture.naturalWidth).map((picture) => picture.src),
  tiny: pictures.filter((picture) => picture.getBoundingClientRect().width < 200).length,
  raw: [...document.querySelectorAll("article p")].filter(
    (text) => /\\\\\\(|\\$\\$|:(ref|doc|py:obj):`/.test(text.textContent)).length,
  remote: performance.getEntriesByType("resource").map((entry) => entry.name)
    .filter((name) => !name.startsWith("file:") && !name.startsWith("data:")),
}));
"""


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("guide")
    scripts = [load(name) for name in SCRIPTS]
    return build_guide(scripts, folder, Folders(), examples=False).index.parent


@pytest.fixture(scope="module")
def chrome() -> Iterator[Chrome]:
    with headless_chromium() as browser:
        yield browser


@pytest.mark.slow
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_fit_and_load_nothing_from_elsewhere(guide: Path, chrome: Chrome, width: int) -> None:
    # A window of Chromium cannot be as narrow as a phone, so the size of the page is emulated.
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    for page in PAGES:
        chrome.get((guide / page).as_uri())
        seen = chrome.execute_async_script(PROBE)
        assert seen == {"wide": 0, "undrawn": [], "tiny": 0, "raw": 0, "remote": []}, page
        severe = [entry for entry in chrome.get_log("browser") if entry["level"] == "SEVERE"]
        assert severe == [], page
