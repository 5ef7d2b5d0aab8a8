"""The report loads in a browser without errors, shows every figure and draws every chart."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from experiments.catalogue import SCRIPTS
from experiments.engine.figures import Folders
from experiments.engine.script import Preset, load
from experiments.report import build_report

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
#: A script that opens all details, presses a key in every chart, clicks every button, and writes
#: the numbers of charts, drawings and faults to the end of the page.
PROBE = """<script>addEventListener("load", () => {
  document.querySelectorAll("details").forEach((details) => (details.open = true));
  setTimeout(() => {
    const all = (selector) => [...document.querySelectorAll(selector)];
    const press = () => new KeyboardEvent("keydown", {key: "ArrowRight"});
    all(".plot svg").forEach((svg) => svg.dispatchEvent(press()));
    const read = all(".readout").map((line) => line.textContent);
    all(".scales button").forEach((button) => button.click());
    const unfit = (attribute) => /NaN|Infinity|undefined/.test(attribute.value);
    const broken = all(".plot svg *").filter((part) => [...part.attributes].some(unfit));
    const probe = document.createElement("pre");
    probe.id = "probe";
    probe.textContent = JSON.stringify({
      wide: document.documentElement.scrollWidth - innerWidth,
      small: all(".drawing img").filter((img) => img.getBoundingClientRect().width < 200).length,
      cut: all(".drawing img").map((img) => img.getBoundingClientRect())
        .filter((box) => box.left < 0 || box.right > innerWidth).length,
      empty: all(".drawing img").filter((img) => !img.complete || !img.naturalWidth).length,
      drawings: all(".drawing img").length, plots: all(".plot").length,
      drawn: all(".plot svg").filter((svg) => svg.querySelector("path, circle")).length,
      silent: read.filter((text) => !text.includes("x = ")).length, broken: broken.length,
    });
    document.body.append(probe);
  }, 500);
});</script></body>"""


@pytest.mark.slow
@pytest.mark.parametrize("width", [400, 500, 1400])
def test_the_committed_figures_in_a_browser(tmp_path: Path, width: int) -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    assert browser is not None, f"this test needs one of {BROWSERS}: apt-get install chromium"
    committed = Folders().figures
    left_out = shutil.ignore_patterns("quick", "report", "*.svg")
    shutil.copytree(committed, tmp_path / "figures", ignore=left_out)
    folders = Folders(tmp_path, tmp_path / "figures")
    built = build_report([load(name) for name in SCRIPTS], Preset.FULL, folders)
    pages = sorted(built.path.parent.glob("*.html"))
    drawn = 0
    for page in pages:
        # A lazy image loads only when it comes into view, so `PROBE` would find it missing.
        text = page.read_text().replace(' loading="lazy"', "")
        page.write_text(text.replace("</body>", PROBE))
        seen = probed(browser, page, width, tmp_path / "profile")
        assert seen["drawn"] == seen["plots"], page.name
        faults = {key: seen[key] for key in ("small", "cut", "empty", "silent", "broken")}
        assert not any(faults.values()), (page.name, faults)
        assert seen["wide"] <= 0, page.name
        drawn += seen["drawings"] if page != built.path else 0
    assert drawn == built.figures > 0


def probed(browser: str, page: Path, width: int, profile: Path) -> dict[str, int]:
    """What `PROBE` finds on a page; the test fails if the page writes to the browser's console."""
    command = [browser, "--headless", "--disable-gpu", "--enable-logging=stderr"]
    if os.geteuid() == 0:
        command.append("--no-sandbox")  # as root, Chromium does not start with a sandbox
    command += [f"--window-size={width},900", "--virtual-time-budget=10000", "--dump-dom"]
    result = subprocess.run(
        [*command, f"--user-data-dir={profile}", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert [line for line in result.stderr.splitlines() if "CONSOLE" in line] == []
    found = re.search(r'<pre id="probe">(.*?)</pre>', result.stdout)
    assert found is not None, page.name
    return dict(json.loads(found[1]))
