"""In Chromium, the lessons open without errors, and a step of a slider changes a picture."""

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.keys import Keys

from geomdp.cli.app import Lesson, all_lessons
from tests.experiments.chromium import headless_chromium

#: Time limits in seconds: for the start of a server, the run of all cells and a step of a slider.
START, CELLS, STEP = 60.0, 120.0, 20.0
#: If no new picture appears for this many seconds, all cells count as run.
QUIET = 5.0
#: Script that finds all elements matching a selector, in the page and in its shadow trees.
DEEP = """
const found = [];
const search = (root) => {
  found.push(...root.querySelectorAll(arguments[0]));
  root.querySelectorAll("*").forEach((part) => part.shadowRoot && search(part.shadowRoot));
};
search(document);
return found;
"""


def _wait(condition: Callable[[], object], seconds: float, what: str) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what} took more than {seconds:g} seconds"
        time.sleep(0.1)


@pytest.fixture
def chrome() -> Iterator[Chrome]:
    with headless_chromium("--window-size=1200,1000") as browser:
        yield browser


@pytest.fixture
def serve() -> Iterator[Callable[[Lesson], str]]:
    servers = []

    def start(lesson: Lesson) -> str:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        flags = ["--headless", "--no-token", "--host", "127.0.0.1", "--port", str(port)]
        command = [sys.executable, "-m", "marimo", "run", *flags, str(lesson.path)]
        servers.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
        address = f"http://127.0.0.1:{port}"
        _wait(lambda: _answers(address), START, "the server")
        return address

    yield start
    for server in servers:
        server.terminate()
        server.wait(timeout=30)


def _answers(address: str) -> bool:
    try:
        with urlopen(address, timeout=5):
            return True
    except URLError:
        return False


@pytest.mark.slow
@pytest.mark.parametrize("lesson", all_lessons(), ids=lambda lesson: lesson.path.stem)
def test_lesson_opens_and_a_slider_moves_a_picture(lesson, chrome, serve):
    chrome.get(serve(lesson))
    # A cell that computes for long shows its picture late, so the test waits for all pictures.
    text = lesson.path.read_text(encoding="utf-8")
    shown = text.count("picture(_figure") + text.count("mo.image(")

    def deep(selector: str) -> list:
        return chrome.execute_script(DEEP, selector)

    def pictures() -> list[str]:
        # One script finds the pictures and reads their sources, because the page may replace an
        # element between two scripts.
        return chrome.execute_script(
            f"return (function () {{{DEEP}}}).apply(null, arguments).map((part) => part.src)", "img"
        )

    def settled() -> bool:
        seen = pictures()
        time.sleep(QUIET)
        return len(seen) == shown and bool(deep("[role=slider]")) and pictures() == seen

    _wait(settled, CELLS, "the first run of all cells")
    before = pictures()
    slider = deep("[role=slider]")[0]
    chrome.execute_script("arguments[0].scrollIntoView(); arguments[0].focus()", slider)
    slider.send_keys(Keys.ARROW_RIGHT)
    _wait(lambda: pictures() != before, STEP, "a step of the slider")
    assert len(pictures()) == len(before)
    severe = [entry for entry in chrome.get_log("browser") if entry["level"] == "SEVERE"]
    assert severe == []
    assert not deep("[data-testid=cell-error], .marimo-error")
