"""Returned files: bound to their pack and its texts, checked, taken in whole or not at all."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.annotate.material import as_detector, saved, write_log
from truecall.annotate import folder as folders
from truecall.annotate.disputes import adjudicate, disputed
from truecall.annotate.frame import texts
from truecall.annotate.making import make
from truecall.annotate.records import Answer, Key
from truecall.errors import InputError, UsageError

COUNTS = {"tight": 4, "well_formed": 3, "malformed": 3, "none": 6}


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """The folder of an annotation by ann and bob."""
    log = write_log(tmp_path / "log.jsonl", COUNTS)
    key, packs = make(
        texts([str(log)]),
        sources=["log"],
        annotators=["ann", "bob"],
        adjudicator="cleo",
        per_stratum=9,
        seed=0,
    )
    folders.create(tmp_path / "work", key, packs)
    return tmp_path / "work"


def key_of(made: Path) -> Key:
    return folders.load(made).key


def write(path: Path, value: Any) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return path


def resummed(file: dict[str, Any]) -> dict[str, Any]:
    """The file with the checksum that its answers have now."""
    from truecall.annotate.records import GivenAnswer

    given = [GivenAnswer(**each) for each in file["answers"]]
    return {**file, "sha256": folders.checksum(given)}


def test_answers_come_back_to_their_texts(made: Path, tmp_path: Path) -> None:
    key = key_of(made)
    files = [write(tmp_path / f"{name}.json", saved(key, name, as_detector)) for name in ("bob", "ann")]
    assert folders.add(made, files) == {"bob": 16, "ann": 16}
    found = folders.load(made)
    assert found.waiting == []
    for name in ("ann", "bob"):
        assert found.answers[name] == {n: item.text.detector for n, item in enumerate(key.items)}
    assert disputed(found) == []


def test_files_are_for_the_user_alone(made: Path) -> None:
    assert {path.stat().st_mode & 0o077 for path in made.rglob("*")} == {0}


def _altered(file: dict[str, Any]) -> dict[str, Any]:
    file["answers"][0]["call"] = "no" if file["answers"][0]["call"] == "yes" else "unclear"
    return file


def _missing(file: dict[str, Any]) -> dict[str, Any]:
    return resummed({**file, "answers": file["answers"][3:]})


def _half(file: dict[str, Any]) -> dict[str, Any]:
    for each in file["answers"]:
        each["tool"] = None
    return resummed(file)


def _twice(file: dict[str, Any]) -> dict[str, Any]:
    return resummed({**file, "answers": [*file["answers"], file["answers"][0]]})


def _foreign_text(file: dict[str, Any]) -> dict[str, Any]:
    file["answers"][0]["sha256"] = "0" * 64
    return resummed(file)


def _no_such_tool(file: dict[str, Any]) -> dict[str, Any]:
    for each in file["answers"]:
        each["tool"] = 7 if each["tool"] is not None else None
    return resummed(file)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda file: {**file, "pack": "f" * 64}, "belongs to no pack"),
        (lambda file: {**file, "annotator": "bob"}, "was made with ann's pack"),
        (_altered, "was altered"),
        (_missing, "3 of 16 texts are not answered"),
        (_half, "10 of 16 texts are not answered"),
        (_twice, "answers one text twice"),
        (_foreign_text, "not in ann's pack"),
        (_no_such_tool, "names a tool that is not in the pack"),
        (lambda file: {**file, "version": 9}, "no answers file of this version"),
        (lambda file: {"messages": []}, "is not what it should be"),
        (lambda file: "{", "is not what it should be"),
        (lambda file: [[]], "is not what it should be"),
    ],
    ids=[
        "pack",
        "name",
        "altered",
        "missing",
        "half",
        "twice",
        "text",
        "tool",
        "version",
        "other",
        "torn",
        "list",
    ],
)
def test_a_file_that_is_not_right_is_one_line(
    made: Path, tmp_path: Path, change: Callable[[Any], Any], message: str
) -> None:
    good = write(tmp_path / "bob.json", saved(key_of(made), "bob", as_detector))
    bad = write(tmp_path / "ann.json", change(saved(key_of(made), "ann", as_detector)))
    with pytest.raises(InputError, match=message) as caught:
        folders.add(made, [good, bad])
    assert str(bad) in str(caught.value) and "\n" not in str(caught.value)
    assert folders.load(made).waiting == ["ann", "bob"]  # all or none


def test_nobody_answers_twice(made: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "ann.json", saved(key_of(made), "ann", as_detector))
    with pytest.raises(InputError, match="given twice"):
        folders.add(made, [file, file])
    folders.add(made, [file])
    with pytest.raises(InputError, match="here already"):
        folders.add(made, [file])


def test_what_was_taken_in_is_checked_again(made: Path, tmp_path: Path) -> None:
    folders.add(made, [write(tmp_path / "ann.json", saved(key_of(made), "ann", as_detector))])
    stored = made / "answers" / "ann.json"
    write(stored, _altered(json.loads(stored.read_text())))
    with pytest.raises(InputError, match="was altered"):
        folders.load(made)


def _protocol(key: Any) -> None:
    key["protocol"]["adjudication"] = "The detector is right."


def _stratum(key: Any) -> None:
    key["items"][0]["text"]["stratum"] = "none"


def _population(key: Any) -> None:
    key["population"]["groups"]["m"]["none"] = 60_000


def _item(key: Any) -> None:
    del key["items"][0]


def _seal(key: Any) -> None:
    del key["sha256"]


@pytest.mark.parametrize("change", [_protocol, _stratum, _population, _item, _seal])
def test_a_key_that_was_changed_afterwards_is_refused(made: Path, change: Callable[[Any], None]) -> None:
    key = json.loads((made / "key.json").read_text())
    change(key)
    write(made / "key.json", key)
    with pytest.raises(InputError, match=r"key\.json: was changed"):
        folders.load(made)


def test_what_a_file_says_is_cut_short_in_an_error(made: Path, tmp_path: Path) -> None:
    file = saved(key_of(made), "ann", as_detector)
    first = {**file["answers"][0], "call": "x" * 1_000_000}
    for strange in ({**file, "annotator": "x" * 1_000_000}, {**file, "answers": [first]}):
        with pytest.raises(InputError) as caught:
            folders.add(made, [write(tmp_path / "ann.json", strange)])
        assert len(str(caught.value)) < 1000


def test_a_full_disk_takes_in_all_files_or_none(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = key_of(made)
    files = [write(tmp_path / f"{name}.json", saved(key, name, as_detector)) for name in ("ann", "bob")]
    written: list[Path] = []

    def full(path: Path, data: bytes) -> None:
        if written:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(path)
        path.write_bytes(data)

    with monkeypatch.context() as patch:
        patch.setattr(folders, "write_private", full)
        with pytest.raises(UsageError, match=r"can't be written \(No space left"):
            folders.add(made, files)
    assert written and folders.load(made).waiting == ["ann", "bob"]
    folders.add(made, files)


def test_a_folder_that_holds_something_is_left_alone(made: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not empty"):
        folders.checked_new(made)
    with pytest.raises(InputError, match="is no annotation"):
        folders.load(tmp_path)


# --------------------------------------------------------------------------- adjudication


def _adjudicated(made: Path, tmp_path: Path) -> tuple[Key, list[int]]:
    """Bob sees no call in the first tight and the first malformed text, and the pack of the disputes is made."""
    key = key_of(made)
    texts_of = {item.sha256: item for item in key.items}
    first = {next(i.sha256 for i in key.items if i.text.stratum == s) for s in ("tight", "malformed")}
    assert len(texts_of) == len(key.items)

    def bobs(item: Any) -> Any:
        return ("no", None, None) if item.sha256 in first else as_detector(item)

    files = [
        write(tmp_path / f"{n}.json", saved(key, n, a)) for n, a in (("ann", as_detector), ("bob", bobs))
    ]
    folders.add(made, files)
    found = adjudicate(folders.load(made))
    assert found is not None
    folders.save_adjudication(made, found[0], found[1], "cleo")
    return key, [n for n, item in enumerate(key.items) if item.sha256 in first]


def test_all_disputes_go_to_the_adjudicator_among_others(made: Path, tmp_path: Path) -> None:
    _, expected = _adjudicated(made, tmp_path)
    made_of = folders.load(made).adjudication
    assert made_of is not None
    assert list(made_of.disputed) == expected and len(made_of.controls) == 2
    assert sorted(made_of.pack.ids.values()) == sorted([*expected, *made_of.controls])
    page = (made / "pack-cleo.html").read_text("utf-8")
    assert "Unclear" not in page and "disputed" not in page and "detector" not in page
    with pytest.raises(UsageError, match="there already"):
        adjudicate(folders.load(made))


def test_the_adjudicator_decides_yes_or_no(made: Path, tmp_path: Path) -> None:
    key, expected = _adjudicated(made, tmp_path)
    pack = folders.load(made).pack_of("cleo")
    unclear = write(tmp_path / "u.json", saved(key, "cleo", lambda item: ("unclear", None, None), pack))
    with pytest.raises(InputError, match="answers yes or no"):
        folders.add(made, [unclear])
    folders.add(made, [write(tmp_path / "c.json", saved(key, "cleo", lambda item: ("no", None, None), pack))])
    decided = folders.load(made).decided
    assert decided is not None and decided[expected[0]] == Answer(call="no")


def test_the_adjudication_holds_to_the_answers_that_it_followed_from(made: Path, tmp_path: Path) -> None:
    key, _ = _adjudicated(made, tmp_path)
    write(made / "answers" / "bob.json", saved(key, "bob", as_detector))
    with pytest.raises(InputError, match="not the file that the adjudication followed from"):
        folders.load(made)


def test_an_adjudication_that_was_changed_is_refused(made: Path, tmp_path: Path) -> None:
    _adjudicated(made, tmp_path)
    found = json.loads((made / "adjudication.json").read_text())
    write(made / "adjudication.json", {**found, "controls": []})
    with pytest.raises(InputError, match=r"adjudication\.json: was changed"):
        folders.load(made)


def test_an_adjudicator_without_a_pack_is_not_heard(made: Path, tmp_path: Path) -> None:
    anns = {**saved(key_of(made), "ann", as_detector), "annotator": "cleo"}
    with pytest.raises(InputError, match="and was made with ann's pack"):
        folders.add(made, [write(tmp_path / "cleo.json", anns)])


def test_adjudication_waits_for_all_annotators(made: Path) -> None:
    with pytest.raises(UsageError, match="ann, bob are not here yet"):
        adjudicate(folders.load(made))
