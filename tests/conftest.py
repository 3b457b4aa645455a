"""Fixtures that several rooms' tests share: a real browser that tells what a page did."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.pages.browser import Watched

NO_CHROMIUM = "no Chromium here (Debian: apt install chromium)"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A headless Chromium of the system. Its absence is a reason to skip, but not where CI runs.

    One for each module, since playwright keeps an event loop running in this thread for as long as it is open:
    a module that uses it has no async tests.
    """
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        if os.environ.get("CI"):
            pytest.fail(NO_CHROMIUM)
        pytest.skip(NO_CHROMIUM)
    from tests.pages.browser import launched

    with launched(path) as browser:
        yield browser


@pytest.fixture
def watched(chromium: Browser) -> Iterator[Watched]:
    """A fresh page of the browser that records requests, errors, dialogs and refused content."""
    from tests.pages.browser import Watched

    page = Watched.opened(chromium)
    yield page
    page.close()
