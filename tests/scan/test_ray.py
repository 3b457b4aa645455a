"""Ray gives the numbers of the process pool, for local files and through its own reader. Needs the extra ``ray``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scan import chats
from truecall.errors import CannotTell
from truecall.scan import ScanOptions, scan

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    from truecall.scan.on_ray import start

    start(None, 2)
    yield
    ray.shutdown()


def test_the_same_numbers(tmp_path: Path, cluster: None, monkeypatch: pytest.MonkeyPatch) -> None:
    from truecall.scan.on_ray import scan_on_ray

    monkeypatch.setattr("truecall.scan.units.STEP", 20_000)
    (tmp_path / "logs").mkdir()
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / "logs" / name).write_bytes(chats.lines(60, seed=ord(name[0])))
    options = ScanOptions(by=("model",), workers=2)
    paths = [str(tmp_path / "logs")]
    whole = chats.plain(scan(paths, options))
    assert chats.plain(scan_on_ray(paths, options)) == whole

    uris = [f"file://{tmp_path}/logs/a.jsonl", f"file://{tmp_path}/logs/b.jsonl"]
    remote = scan_on_ray(uris, options)
    assert sorted(remote.files.values()) == sorted(scan(paths, options).files.values())
    assert chats.plain(remote)["groups"] == whole["groups"]

    (tmp_path / "x.txt").write_text("no log")
    with pytest.raises(CannotTell):
        scan_on_ray([f"file://{tmp_path}/x.txt"], options)
