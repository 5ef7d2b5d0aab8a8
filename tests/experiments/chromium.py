"""The system's Chromium, driven by selenium, for tests that open pages."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service

#: Without a window, and without what a browser does in the background.
QUIET = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


@contextmanager
def headless_chromium(*flags: str) -> Iterator[Chrome]:
    """A browser without a window. It gets the extra `flags` and keeps the log of the console."""
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    assert binary, "this test needs chromium on the path"
    assert driver, "this test needs chromedriver on the path"
    options = ChromeOptions()
    options.binary_location = binary
    for flag in (*QUIET, *flags):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = Chrome(options=options, service=Service(driver))
    try:
        yield browser
    finally:
        browser.quit()
