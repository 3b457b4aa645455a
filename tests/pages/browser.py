"""A page in a real Chromium that records all that it did: requests, console errors, dialogs, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

QUIET = [
    *("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-sandbox"),
]
PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1280, "height": 900}


@contextmanager
def launched(path: str) -> Iterator[Browser]:
    """Chromium, headless. Inside this block the thread has a running event loop (playwright's own)."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield browser
        browser.close()


@dataclass
class Watched:
    """A page and what happened in it.

    ``requests`` holds the addresses asked for, without those that the policy stopped in the browser; ``errors``
    the console's errors, among them every such refusal.
    """

    page: Page
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    @classmethod
    def opened(cls, browser: Browser, *, dark: bool = False, size: dict[str, int] | None = None) -> Watched:
        """A fresh page in a context of its own (no cookies, no storage)."""
        context = browser.new_context(
            color_scheme="dark" if dark else "light",
            viewport=size or DESKTOP,  # type: ignore[arg-type]
            accept_downloads=True,
        )
        made = cls(context.new_page())
        made.page.on("request", lambda request: made.requests.append(request.url))
        made.page.on("requestfailed", made._failed)
        made.page.on("console", lambda said: made.errors.append(said.text) if said.type == "error" else None)
        made.page.on("pageerror", lambda error: made.errors.append(str(error)))
        made.page.on("dialog", made._dialog)
        return made

    def _failed(self, request: Any) -> None:
        if request.failure == "csp":
            self.requests.remove(request.url)

    def _dialog(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def foreign(self, origin: str) -> list[str]:
        """The requests that left ``origin`` (``file://`` for a file, ``http://127.0.0.1:8000`` for a server)."""
        return [url for url in self.requests if not url.startswith((origin, "data:", "blob:", "about:"))]

    def faults(self) -> list[str]:
        """What axe-core finds against WCAG 2 A and AA, a line each: rule, what it is about, and where."""
        from axe_playwright_python.sync_playwright import Axe

        options = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
        found = Axe().run(self.page, options=options).response["violations"]
        return [
            f"{fault['id']}: {fault['help']}: {node['target']} {node.get('failureSummary', '')[:200]}"
            for fault in found
            for node in fault["nodes"]
        ]

    def close(self) -> None:
        """Close the page and its context."""
        self.page.context.close()
