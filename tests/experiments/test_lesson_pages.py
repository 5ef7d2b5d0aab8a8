"""In Chromium from the file system: every input and handle of the lessons' pages works offline."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from experiments.lessons.web.pages import LessonPage, course, lesson_pages
from experiments.lessons.web.plain_notebook import Notebook, Shown
from geomdp.cli.app import all_lessons, find_lesson
from tests.experiments.chromium import headless_chromium

pytestmark = pytest.mark.slow
NAMES = [lesson.name for lesson in all_lessons()]
FORMULA = re.compile(r"<math.*?</math>|<[^>]*>|\$[^$]*\$", re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a bare page for each lesson."""
    folder = tmp_path_factory.mktemp("site")
    for page in lesson_pages(folder):
        (folder / f"{page.name}.html").write_text(_document(page), encoding="utf-8")
    return folder


def _document(page: LessonPage) -> str:
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><link rel="icon" href="data:,">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{page.title}</title></head>"
        f"<body><h1>{page.number}. {page.title}</h1>{page.html}</body></html>"
    )


@pytest.fixture(scope="module")
def chrome() -> Iterator[Chrome]:
    with headless_chromium("--window-size=1200,1000") as browser:
        yield browser


@pytest.fixture(params=NAMES)
def lesson(request: pytest.FixtureRequest, chrome: Chrome, site: Path) -> Iterator[str]:
    """The name of a lesson whose page is open; at the end its console must be empty."""
    chrome.get("about:blank")
    chrome.get((site / f"{request.param}.html").as_uri())
    yield request.param
    assert chrome.get_log("browser") == []


def _reveal(chrome: Chrome) -> None:
    for button in chrome.find_elements(By.CSS_SELECTOR, ".predict button"):
        button.send_keys(Keys.ENTER)


def _state(chrome: Chrome) -> dict[str, Any]:
    return json.loads(chrome.execute_script("return JSON.stringify(Lesson.state)"))


def test_every_input_reaches_both_ends(lesson, chrome):
    _reveal(chrome)
    controls = Notebook(find_lesson(lesson).path).controls
    seen = set()
    for field in chrome.find_elements(
        By.CSS_SELECTOR, "[data-control] input, [data-control] select"
    ):
        name, kind = field.get_attribute("name"), field.get_attribute("type")
        seen.add(name)
        if kind == "checkbox":
            before = _state(chrome)[name]
            field.send_keys(Keys.SPACE)
            assert _state(chrome)[name] != before
            field.send_keys(Keys.SPACE)
            continue
        values = controls[name].values if kind == "range" else range(len(controls[name].options))
        for key, end in ((Keys.HOME, values[0]), (Keys.END, values[-1])):
            field.send_keys(key)
            assert _state(chrome)[name] == pytest.approx(end), name
    assert seen == set(controls)


def _random_positions(notebook: Notebook, rng: np.random.Generator) -> dict[str, Any]:
    """For each control a position in the form of the page."""
    found: dict[str, Any] = {}
    for name, control in notebook.controls.items():
        if control.kind == "multiselect":
            found[name] = sorted(rng.permutation(len(control.options))[:2].tolist())
        elif control.options:
            found[name] = int(rng.integers(len(control.options)))
        elif control.even:
            found[name] = float(rng.uniform(control.values[0], control.values[-1]))
        else:
            found[name] = control.values[rng.integers(len(control.values))]
    return found


def _numbers(text: str) -> list[float]:
    plain = FORMULA.sub(" ", text).replace("\u2212", "-")
    return [float(number.replace(",", "")) for number in NUMBER.findall(plain)]


def _said(shown: Shown) -> str:
    return " ".join(shown.titles) + shown.html


def test_eight_random_positions_agree_with_the_notebook(lesson, chrome):
    notebook, rng = Notebook(find_lesson(lesson).path), np.random.default_rng(len(lesson))
    figures = [notebook.shown[place] for place in sorted(notebook.shown)]
    places = [place for place in sorted(notebook.shown) if notebook.shown[place].follows]
    _reveal(chrome)
    for _ in range(8):
        positions = _random_positions(notebook, rng)
        for name, value in positions.items():
            control = notebook.controls[name]
            chrome.execute_script("Lesson.set(arguments[0], arguments[1])", name, value)
            if control.kind == "multiselect":
                notebook.set(name, [control.values[i] for i in value])
            else:
                notebook.set(name, control.values[value] if control.options else value)
        outputs = chrome.execute_script("return Lesson.figures.map((f) => f.output.innerHTML)")
        for place, output in zip(places, outputs, strict=True):
            mine, theirs = _numbers(output), _numbers(_said(notebook.shown[place]))
            message = f"{positions}: {output!r} but {_said(notebook.shown[place])!r}"
            assert mine == pytest.approx(theirs, rel=1e-3, abs=1.01e-3), message
    # Each picture says at least one number somewhere, or the comparison is empty.
    assert sum(bool(_numbers(_said(shown))) for shown in figures if shown.follows) >= 2


def test_a_drag_and_an_arrow_key_of_each_handle_move_its_controls(lesson, chrome):
    guesses = chrome.find_elements(By.CSS_SELECTOR, ".knob.guess")
    assert guesses
    for guess in guesses:
        before = guess.get_attribute("aria-valuetext")
        guess.send_keys(Keys.ARROW_UP, Keys.ARROW_LEFT)
        assert guess.get_attribute("aria-valuetext") != before
    _reveal(chrome)
    count = chrome.execute_script("return Lesson.figures.map((figure) => figure.knobs.length)")
    assert sum(count) >= 2
    for i, knobs in enumerate(count):
        for j in range(knobs):
            for act in (_press, _drag):
                before = _state(chrome)
                act(chrome, i, j)
                changed = {name for name, value in _state(chrome).items() if value != before[name]}
                follows = chrome.execute_script(f"return Lesson.figures[{i}].follows")
                assert changed, (lesson, i, j, act.__name__)
                assert changed <= set(follows), (lesson, i, j, act.__name__)
                for name, value in before.items():
                    chrome.execute_script("Lesson.set(arguments[0], arguments[1])", name, value)


def _press(chrome: Chrome, i: int, j: int) -> None:
    knob, before = _knob(chrome, i, j), _state(chrome)
    for key in (Keys.ARROW_RIGHT, Keys.ARROW_LEFT, Keys.ARROW_UP):
        if _state(chrome) == before:
            knob.send_keys(key)


def _drag(chrome: Chrome, i: int, j: int) -> None:
    knob, before = _knob(chrome, i, j), _state(chrome)
    for x, y in ((-110, 80), (110, -80), (230, 0), (0, -230), (-230, 0), (0, 230)):
        if _state(chrome) == before:
            act = ActionChains(chrome, duration=20).move_to_element(knob).click_and_hold()
            act.move_by_offset(x, y).release().perform()


def _knob(chrome: Chrome, i: int, j: int) -> Any:
    return chrome.execute_script(
        "const knob = Lesson.figures[arguments[0]].knobs[arguments[1]];"
        "knob.scrollIntoView({block: 'center'}); return knob",
        i,
        j,
    )


def test_the_keyboard_alone_reaches_everything(lesson, chrome):
    _reveal(chrome)
    script = (
        "const all = [...document.querySelectorAll('article a, article button, article input, "
        "article select, article summary, .knob')].filter((e) => e.getClientRects().length);"
        "const first = (e) => e.type !== 'radio' || "
        "e === document.querySelector(`input[name=${e.name}]`);"
        "window.wanted = all.filter(first); window.reached = new Set(); return wanted.length"
    )
    wanted = chrome.execute_script(script)
    chrome.execute_script("document.activeElement.blur(); scrollTo(0, 0)")
    body = chrome.find_element(By.TAG_NAME, "body")
    body.click()
    for _ in range(wanted + 2):
        chrome.switch_to.active_element.send_keys(Keys.TAB)
        chrome.execute_script("reached.add(document.activeElement)")
    left = "return wanted.filter((e) => !reached.has(e)).map((e) => e.outerHTML.slice(0, 80))"
    assert chrome.execute_script(left) == []


def test_questions_are_checked_and_say_why(lesson, chrome):
    number = find_lesson(lesson).number
    for i, question in enumerate(course()[number]["question"]):
        field = chrome.find_elements(By.CSS_SELECTOR, ".question")[i]
        check = field.find_element(By.TAG_NAME, "button")
        if "answer" in question:
            box = field.find_element(By.TAG_NAME, "input")
            box.send_keys("987654")
            check.send_keys(Keys.ENTER)
            assert "Not yet" in field.text
            box.clear()
            box.send_keys(str(question["answer"]))
        elif "options" in question:
            options = field.find_elements(By.TAG_NAME, "input")
            options[question["right"] - 1].send_keys(Keys.SPACE)
            check.send_keys(Keys.ENTER)
            assert "Not yet" in field.text
            options[question["right"]].send_keys(Keys.SPACE)
        else:
            check.send_keys(Keys.ENTER)
            start = "Right" if number == 0 else "Not yet"
            assert start in field.text
            continue
        check.send_keys(Keys.ENTER)
        assert question["why"] in field.text


#: For each question about a place, positions that answer it.
RIGHT_PLACES = {
    "body": {"first": 0.2, "second": 0.6},
    "neighbours": {"angle": 0, "length": 1},
    "width": {"seen": 1, "turn": 200},
    "projection": {"smokes": 1, "both": 1, "noise_angle": 45, "noise_length": 1},
    "lower_bounds": {"people": 3, "copies": 2, "error": 0.1, "loss": 0.5},
    "sparse_vector": {"gap": 0.95, "noise": -1},
    "smooth": {"first": -1, "second": 1},
    "release": {"planned": 100000, "loss": 3.0},
}


@pytest.mark.parametrize("lesson", RIGHT_PLACES, indirect=True)
def test_a_right_place_is_recognised(lesson, chrome):
    for name, value in RIGHT_PLACES[lesson].items():
        chrome.execute_script("Lesson.set(arguments[0], arguments[1])", name, value)
    field = chrome.find_element(By.CSS_SELECTOR, ".question[data-place]")
    field.find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    assert "Right" in field.text


def test_nothing_is_cut_on_a_narrow_screen(lesson, chrome):
    wide = {"width": 375, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", wide)
    try:
        _reveal(chrome)
        assert chrome.execute_script("return document.documentElement.scrollWidth") <= 375
        cut = (
            "return [...document.querySelectorAll('svg text')].filter((text) => {"
            "const inner = text.getBoundingClientRect(),"
            " outer = text.ownerSVGElement.getBoundingClientRect();"
            "return inner.left < outer.left - 1 || inner.right > outer.right + 1 ||"
            " inner.top < outer.top - 3 || inner.bottom > outer.bottom + 1"
            "}).map((text) => text.textContent)"
        )
        assert chrome.execute_script(cut) == []
    finally:
        chrome.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_the_address_keeps_the_state(chrome, site):
    address = (site / "body.html").as_uri()
    chrome.get("about:blank")
    chrome.get(f"{address}#first=1.25&second=-0.3")
    assert _state(chrome)["first"] == 1.25
    chrome.execute_script("Lesson.set('second', 0.75)")
    script = "return location.hash.includes('second=0.75') && location.hash.includes('first=1.25')"
    for _ in range(50):
        if chrome.execute_script(script):
            break
        ActionChains(chrome).pause(0.1).perform()
    assert chrome.execute_script(script)


def test_slides_show_one_figure_at_a_time(lesson, chrome):
    chrome.find_element(By.CSS_SELECTOR, ".modes button").send_keys(Keys.ENTER)
    count = len(chrome.find_elements(By.CSS_SELECTOR, "article.lesson > figure"))
    seen = set()
    for _ in range(count):
        visible = [f for f in chrome.find_elements(By.CSS_SELECTOR, "figure") if f.is_displayed()]
        assert len(visible) == 1
        seen.add(visible[0].id)
        assert chrome.find_element(By.CSS_SELECTOR, ".notes").is_displayed()
        chrome.find_element(By.TAG_NAME, "body").send_keys(Keys.PAGE_DOWN)
    assert len(seen) == count
    chrome.find_element(By.TAG_NAME, "body").send_keys(Keys.ESCAPE)
    assert not chrome.find_element(By.CSS_SELECTOR, ".notes").is_displayed()


def test_an_unchanged_lesson_is_not_run_again(tmp_path, site, monkeypatch):
    monkeypatch.setattr("experiments.lessons.web.pages.Notebook", None)
    assert [page.number for page in lesson_pages(tmp_path)] == [*range(11)]
