"""The sample, and packs that say nothing of what the detector said."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.annotate.material import write_log
from truecall.annotate.frame import LeftOut, texts
from truecall.annotate.making import Sample, checked_names, make
from truecall.annotate.pack import Pack, item_digest
from truecall.annotate.records import Key, Passage, Text
from truecall.errors import CannotTell, UsageError

COUNTS = {"tight": 12, "well_formed": 8, "malformed": 6, "none": 30}


def made(tmp_path: Path, *, extra: tuple[str, ...] = (), **options: Any) -> tuple[Key, dict[str, Pack]]:
    log = write_log(tmp_path / "log.jsonl", COUNTS, extra=extra)
    settings = {"annotators": ["ann", "bob"], "adjudicator": "cleo", "per_stratum": 6, "seed": 3, **options}
    return make(texts([str(log)]), sources=[str(log)], **settings)


def data_of(pack: Pack) -> dict[str, Any]:
    """The data as a browser reads them out of the page."""
    return json.loads(raw_of(pack))


def raw_of(pack: Pack) -> str:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', pack.html, re.S)
    assert found is not None
    return found[1]


def texts_of(count: int, stratum: str = "none") -> Iterator[Text]:
    plain = Text(
        "p", "g", (Passage("text", "x"),), stratum, msgspec.convert({"call": "no"}, Any), ("", "", ""), "raw"
    )
    return (msgspec.structs.replace(plain, place=str(n)) for n in range(count))


# --------------------------------------------------------------------------- the sample


def test_each_stratum_gives_what_it_has_up_to_the_limit(tmp_path: Path) -> None:
    key, _ = made(tmp_path, per_stratum=7)
    assert Counter(item.text.stratum for item in key.items) == {
        "tight": 7, "well_formed": 7, "malformed": 6, "none": 7
    }  # fmt: skip
    assert key.population.groups == {"m": COUNTS} and key.population.turns == 56


def test_the_seed_decides_the_sample(tmp_path: Path) -> None:
    places = [[item.text.place for item in made(tmp_path, seed=seed)[0].items] for seed in (3, 3, 4)]
    assert places[0] == places[1] != places[2]


def test_every_turn_of_a_stratum_has_the_same_chance() -> None:
    """10 of 40, 2,000 times: each place 500 times, give or take four standard deviations (19.4)."""
    drawn: Counter[str] = Counter()
    for seed in range(2000):
        sample = Sample(10, seed)
        for text in texts_of(40):
            sample.add(text)
        drawn.update(text.place for text in sample.drawn["none"])
    assert len(drawn) == 40 and max(abs(count - 500) for count in drawn.values()) < 78


def test_left_out_turns_are_counted_by_reason() -> None:
    sample = Sample(1, 0)
    for reason in ("x", "y", "x"):
        sample.add(LeftOut(reason=reason))
    assert sample.population().left_out == {"x": 2, "y": 1}


def test_no_text_is_one_clear_line() -> None:
    with pytest.raises(CannotTell, match="no text to annotate \\(1: gone\\)"):
        make([LeftOut("gone")], sources=["x"], annotators=["a", "b"], adjudicator="c", per_stratum=1, seed=0)


@pytest.mark.parametrize(
    ("annotators", "adjudicator", "message"),
    [
        (["a"], "c", "two annotators"),
        (["a", "A"], "c", "named twice"),
        (["a", "b"], "b", "named twice"),
        (["a", "../b"], "c", "letters, digits"),
        (["a", ""], "c", "letters, digits"),
    ],
)
def test_names_that_cannot_be(annotators: list[str], adjudicator: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        checked_names(annotators, adjudicator)


# --------------------------------------------------------------------------- blindness


def test_a_pack_holds_texts_and_tools_and_nothing_else(tmp_path: Path) -> None:
    key, packs = made(tmp_path)
    data = data_of(packs["ann"])
    assert set(data) == {"format", "annotator", "protocol", "decides", "toolsets", "items"}
    assert {frozenset(item) for item in data["items"]} == {
        frozenset({"id", "sha256", "passages", "tools", "cut"})
    }
    assert data["protocol"] == key.protocol_sha256
    for secret in (
        "tight",
        "malformed",
        "stratum",
        "surfaced",
        "leaked",
        "turn.no_call",
        "hermes",
        str(tmp_path),
    ):
        assert secret not in packs["ann"].html.replace("Is a call well-formed", "")
    assert len(packs["ann"].html.encode()) == len(packs["bob"].html.encode())


def test_ids_and_order_differ_and_say_nothing(tmp_path: Path) -> None:
    _, packs = made(tmp_path)
    first, second = (data_of(packs[name])["items"] for name in ("ann", "bob"))
    assert not {item["id"] for item in first} & {item["id"] for item in second}
    assert [item["sha256"] for item in first] != [item["sha256"] for item in second]
    assert sorted(item["sha256"] for item in first) == sorted(item["sha256"] for item in second)
    again = data_of(made(tmp_path)[1]["ann"])["items"]  # the same seed: the same texts, another order
    assert [item["sha256"] for item in first] != [item["sha256"] for item in again]


def test_the_order_does_not_follow_the_strata(tmp_path: Path) -> None:
    """Over many packs a text of the first stratum stands at every place alike: the mean place is the middle."""
    key, _ = made(tmp_path)
    from truecall.annotate.pack import make_pack

    places = []
    for _ in range(60):
        order = list(make_pack("a", key.items, range(len(key.items)), key.toolsets, "").ids.values())
        places += [place for place, number in enumerate(order) if key.items[number].text.stratum == "tight"]
    middle = (len(key.items) - 1) / 2
    spread = ((len(key.items) ** 2 - 1) / 12 / len(places)) ** 0.5
    assert abs(sum(places) / len(places) - middle) < 4 * spread


def test_the_bytes_are_whole_and_bound(tmp_path: Path) -> None:
    odd = 'a\u202eb\x00c</script><script>alert(1)</script>\r\n&lt;"\ufffd' + "x" * 50_000
    key, packs = made(tmp_path, extra=(odd,) * 20, per_stratum=100)
    pack = packs["ann"]
    raw, data = raw_of(pack), data_of(pack)
    assert raw.isascii() and not set("<>&") & set(raw)
    assert hashlib.sha256(raw.encode()).hexdigest() == pack.sha256 == key.packs["ann"].sha256
    assert sum(passage["text"] == odd for item in data["items"] for passage in item["passages"]) == 20
    for item in data["items"]:
        held = key.items[pack.ids[item["id"]]]
        assert item["passages"] == [msgspec.to_builtins(passage) for passage in held.text.passages]
        tools = key.toolsets[held.toolset] if held.toolset is not None else None
        assert item["sha256"] == held.sha256 == item_digest(held.text.passages, tools)
        assert [tool["name"] for tool in data["toolsets"][item["tools"]]] == ["get_weather", "book_flight"]
