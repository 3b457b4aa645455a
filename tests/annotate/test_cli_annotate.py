"""``truecall annotate`` from the first draw to the numbers, and its exit codes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from statsmodels.stats.inter_rater import cohens_kappa

from tests.annotate.material import as_detector, saved, write_log
from truecall.annotate import folder as folders
from truecall.annotate.report import Output
from truecall.cli import execute

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "schemas" / "annotate.json"
Read = Callable[[], tuple[str, str]]


@pytest.fixture
def read(capsys: pytest.CaptureFixture[str]) -> Read:
    def taken() -> tuple[str, str]:
        found = capsys.readouterr()
        return found.out, found.err

    return taken


@pytest.fixture
def work(tmp_path: Path, read: Read) -> Path:
    """A new annotation of 30 texts of 70 turns, made on the command line."""
    log = write_log(tmp_path / "log.jsonl", {"tight": 20, "well_formed": 10, "none": 40})
    assert execute(["annotate", "make", str(log), "-o", str(tmp_path / "work"), "--per-stratum", "10"]) == 0
    out, err = read()
    assert "30 texts drawn from 70 turns: tight 10 of 20, well_formed 10 of 10, none 10 of 40" in out
    assert "pack-a.html" in out and "next: truecall annotate add" in err
    return tmp_path / "work"


def send(work: Path, name: str, answer: Any) -> Path:
    annotation = folders.load(work)
    path = work.parent / f"answers-{name}.json"
    path.write_text(json.dumps(saved(annotation.key, name, answer, annotation.pack_of(name))), "utf-8")
    return path


def bobs(item: Any) -> Any:
    """The detector's answers, but for texts whose digest begins with a low digit."""
    return ("no", None, None) if item.sha256 < "4" else as_detector(item)


def test_the_whole_way(work: Path, read: Read) -> None:
    assert execute(["annotate", "status", str(work)]) == 0
    assert read()[0].splitlines() == ["a: nothing yet", "b: nothing yet"]
    assert execute(["annotate", "export", str(work)]) == 2
    out, err = read()
    assert out.startswith("Not done: the answers of a, b are missing.") and "send the packs of a, b" in err

    assert (
        execute(["annotate", "add", str(work), str(send(work, "a", as_detector)), str(send(work, "b", bobs))])
        == 0
    )
    assert read()[1] == f"next: truecall annotate adjudicate {work}\n"
    assert execute(["annotate", "export", str(work)]) == 2
    assert "disputed texts wait for the adjudicator" in read()[0]
    assert execute(["annotate", "adjudicate", str(work)]) == 0
    assert "pack-adjudicator.html" in read()[0]
    assert execute(["annotate", "status", str(work)]) == 0
    assert "adjudicator: nothing yet" in read()[0]

    assert execute(["annotate", "add", str(work), str(send(work, "adjudicator", as_detector))]) == 0
    assert execute(["annotate", "status", str(work)]) == 0
    assert f"next: truecall annotate export {work}" in read()[1]
    assert execute(["annotate", "export", str(work)]) == 0
    out, err = read()
    assert out.startswith("The detector's calls, weighted back to 70 turns: precision 100.0 %")
    assert "Clopper-Pearson" not in out.splitlines()[0] and err == ""


def test_the_json_fits_its_schema_and_the_csv_gives_the_same_kappa(work: Path, read: Read) -> None:
    execute(["annotate", "add", str(work), str(send(work, "a", as_detector)), str(send(work, "b", bobs))])
    execute(["annotate", "adjudicate", str(work)])
    execute(["annotate", "add", str(work), str(send(work, "adjudicator", as_detector))])
    read()
    assert execute(["annotate", "export", str(work), "--json"]) == 0
    found = json.loads(read()[0])
    jsonschema_rs.validator_for(json.loads(SCHEMA.read_text("utf-8"))).validate(found)
    assert found["schema_version"] == 1 and found["call"]["precision"]["value"] == 1

    assert execute(["annotate", "export", str(work), "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(read()[0])))
    table = [[0, 0], [0, 0]]
    for row in rows:
        table[row["call_a"] == "yes"][row["call_b"] == "yes"] += 1
    assert found["call"]["agreement"][0]["kappa"]["value"] == pytest.approx(
        cohens_kappa(table).kappa, abs=1e-9
    )
    weights = {row["stratum"]: float(row["weight"]) for row in rows}
    assert weights == {"tight": 2, "well_formed": 1, "none": 4}
    assert sum(float(row["weight"]) for row in rows if row["call_final"] == "yes") / 70 == pytest.approx(
        found["call"]["rate"]["value"]
    )


def test_nothing_disputed_needs_no_adjudicator(work: Path, read: Read) -> None:
    execute(
        ["annotate", "add", str(work), str(send(work, "a", as_detector)), str(send(work, "b", as_detector))]
    )
    read()
    assert execute(["annotate", "adjudicate", str(work)]) == 0
    assert "nothing to adjudicate" in read()[0]
    assert execute(["annotate", "export", str(work)]) == 0


def test_published_schema_is_up_to_date() -> None:
    made = json.loads(msgspec.json.encode(msgspec.json.schema(Output)))
    assert json.loads(SCHEMA.read_text("utf-8")) == made


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["make", "nowhere.jsonl", "-o", "OUT"], "no such file or folder"),
        (["make", "LOG", "-o", "."], "is not empty"),
        (["make", "LOG", "-o", "OUT", "--annotators", "a"], "two annotators"),
        (["make", "LOG", "-o", "OUT", "--annotators", "a,b", "--adjudicator", "b"], "named twice"),
        (["make", "LOG", "-o", "OUT", "--tools", "nowhere.json"], "nowhere.json"),
        (["status", "."], "is no annotation"),
        (["add", ".", "nowhere.json"], "is no annotation"),
        (["export", "nowhere"], "is no annotation"),
        (["export", "nowhere", "--json", "--csv"], "one of them"),
        (["make", "LOG", "-o", "OUT", "--annotators", "a/b,c"], "letters, digits"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Read
) -> None:
    monkeypatch.chdir(tmp_path)
    write_log(tmp_path / "LOG", {"none": 3})
    assert execute(["annotate", *words]) == 2
    out, err = read()
    assert said in err and err.count("\n") == 1 and out == ""
    assert not (tmp_path / "OUT").exists()


def test_text_of_a_log_does_not_become_a_formula(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Read
) -> None:
    monkeypatch.chdir(tmp_path)
    write_log(Path("=1+1.jsonl"), {"tight": 2, "none": 2})
    assert execute(["annotate", "make", "=1+1.jsonl", "-o", "work"]) == 0
    read()
    execute(["annotate", "export", "work", "--csv"])
    places = [row["place"] for row in csv.DictReader(io.StringIO(read()[0]))]
    assert places and all(place.startswith("'=") for place in places)


def test_a_log_that_is_named_twice_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Read
) -> None:
    monkeypatch.chdir(tmp_path)
    log = write_log(tmp_path / "a.jsonl", {"tight": 3, "none": 2})
    (tmp_path / "link.jsonl").symlink_to(log)
    assert execute(["annotate", "make", "a.jsonl", str(log), "link.jsonl", ".", "-o", "my work"]) == 0
    out, err = read()
    assert "5 texts drawn from 5 turns" in out and "truecall annotate add 'my work' FILE" in err
