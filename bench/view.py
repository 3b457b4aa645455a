"""The viewer on a long run: python bench/view.py [--turns 100000] [--folder DIR] [--rounds 15]

Makes a run folder with so many turns by the real writers (or takes DIR, which is kept), indexes it, and measures each
page in two ways: the server's whole answer, and Chromium from the click to the load event. Goals: the first page under
1 s, a filter under 1 s. Floor: aiohttp and sqlite alone, fifty rows of the same index as plain text. The rounds of
floor and viewer are interleaved. Exit 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from pathlib import Path

from aiohttp import web

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.view.folders import study_folder

from truecall.view import Shelf, serving

GOAL = 1.0
PAGES = {
    "first page": "/",
    "filter: delivery leaked": "/?delivery=leaked",
    "filter: two columns": "/?emission=valid&cause=parser",
    "filter: a seed": "/?seed=77",
    "filter: a defect": "/?defect=no_done",
    "search: a rare word": "/?text=lighthouse",
    "search: a common word": "/?text=harbour",
    "search and filter": "/?text=open_box&delivery=surfaced",
}
FLOOR_WHERE = {"/": "1", "/?delivery=leaked": "delivery = 'leaked'"}


async def floor(index: Path) -> tuple[web.AppRunner, int]:
    """A server of nothing but aiohttp and sqlite."""
    db = sqlite3.connect(index)

    async def rows(request: web.Request) -> web.Response:
        where = FLOOR_WHERE[request.path_qs]
        total = db.execute(f"SELECT count(*) FROM turns WHERE {where}").fetchone()
        found = db.execute(f"SELECT * FROM turns WHERE {where} ORDER BY id LIMIT 50").fetchall()
        return web.Response(text="\n".join(map(str, [total, *found])))

    app = web.Application()
    app.router.add_get("/", rows)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner, runner.addresses[0][1]


def asked(port: int, path: str, cookie: str = "") -> float:
    """Seconds for one whole answer."""
    began = time.perf_counter()
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    client.request("GET", path, headers={"Cookie": cookie})
    answer = client.getresponse()
    answer.read()
    client.close()
    assert answer.status == 200, (path, answer.status)
    return time.perf_counter() - began


async def in_chromium(address: str, origin: str, rounds: int) -> dict[str, list[float]]:
    """Seconds from the start of the navigation to the end of its load event."""
    from playwright.async_api import async_playwright

    path = shutil.which("chromium") or shutil.which("google-chrome")
    took: dict[str, list[float]] = {name: [] for name in PAGES}
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = await browser.new_page()
        await page.goto(address)
        for _ in range(rounds):
            for name, where in PAGES.items():
                await page.goto(origin + where, wait_until="load")
                script = "performance.getEntriesByType('navigation')[0].loadEventEnd"
                await page.wait_for_function(f"{script} > 0")
                took[name].append(await page.evaluate(script) / 1000)
        await browser.close()
    return took


async def measured(folder: Path, rounds: int) -> bool:
    began = time.perf_counter()
    (folder / "index.sqlite").unlink(missing_ok=True)
    with Shelf([str(folder)]) as shelf:
        turns = shelf.runs[folder.name].index.count()
        print(f"{turns:,} turns indexed in {time.perf_counter() - began:.1f} s")
        async with serving(shelf) as door:
            runner, floor_port = await floor(folder / "index.sqlite")
            cookie = f"{door.cookie}={door.token}"
            times: dict[str, list[float]] = {name: [] for name in PAGES}
            floors: dict[str, list[float]] = {path: [] for path in FLOOR_WHERE}
            cold = await asyncio.to_thread(asked, door.port, "/", cookie)
            for _ in range(rounds):
                for name, path in PAGES.items():
                    times[name].append(await asyncio.to_thread(asked, door.port, path, cookie))
                    if path in floors:
                        floors[path].append(await asyncio.to_thread(asked, floor_port, path))
            await runner.cleanup()
            shown = await in_chromium(door.address(), f"http://127.0.0.1:{door.port}", rounds)
    print(f"the very first page: {cold * 1000:.0f} ms at the server")
    print(f"{'':28}{'server ms':>18}{'Chromium ms':>18}{'floor ms':>10}   median (worst) of {rounds}")
    missed = cold > GOAL
    for name, path in PAGES.items():
        bare = f"{statistics.median(floors[path]) * 1000:.0f}" if path in floors else ""
        print(f"{name:28}{both(times[name]):>18}{both(shown[name]):>18}{bare:>10}")
        missed |= statistics.median(shown[name]) > GOAL
    return missed


def both(seconds: list[float]) -> str:
    return f"{statistics.median(seconds) * 1000:.0f} ({max(seconds) * 1000:.0f})"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=100_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch) / "run"
        if not (folder / "log.jsonl").exists():
            study_folder(folder, options.turns)
        return int(asyncio.run(measured(folder, options.rounds)))


if __name__ == "__main__":
    sys.exit(main())
