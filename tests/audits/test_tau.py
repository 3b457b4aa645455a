"""tau-bench and tau2: errors counted as failures, or dropped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from truecall.audits.tau import TauReport, answer, audit
from truecall.errors import InputError

CALL = '<tool_call>\n{"name": "find_user", "arguments": {"id": "1"}}\n</tool_call>'


def tau(
    task: int, reward: float, trial: int = 0, error: str | None = None, text: str = "Done."
) -> dict[str, Any]:
    if error is not None:
        return {"task_id": task, "reward": 0.0, "trial": trial, "traj": [],
                "info": {"error": error, "traceback": f"Traceback\n{error}"}}  # fmt: skip
    traj = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": text, "tool_calls": None}]
    return {"task_id": task, "reward": reward, "trial": trial, "traj": traj, "info": {"reward_info": {}}}


def tau2(task: str, reward: float | None, reason: str = "user_stop", trial: int = 0) -> dict[str, Any]:
    failed = reason == "infrastructure_error"
    messages = [] if failed else [{
        "role": "assistant", "content": "Done.", "tool_calls": None,
        "raw_data": {"choices": [{"message": {"content": CALL if task == "leak" else "Done."}}]},
    }]  # fmt: skip
    return {"task_id": task, "trial": trial, "id": f"{task}-{trial}", "termination_reason": reason,
            "reward_info": None if reward is None else {"reward": reward}, "messages": messages}  # fmt: skip


def tau_file(folder: Path, items: list[Any]) -> Path:
    path = folder / "run.json"
    path.write_text(json.dumps(items, indent=1))
    return path


def read(path: Path, kind: Any = "tau-bench") -> TauReport:
    return audit([path], kind)


def test_errors_by_cause_and_each_treatment(tmp_path: Path) -> None:
    report = read(tau_file(tmp_path, [
        tau(0, 1.0), tau(1, 0.0), tau(2, 1.0),
        tau(3, 0, error="litellm.RateLimitError: 429"), tau(4, 0, error="Error code: 500 - {'error': 'x'}"),
        tau(5, 0, error="Expecting value: line 1 column 1 (char 0)"),
        tau(6, 0, error="This model's maximum context length is 8192 tokens"),
        tau(7, 0, error="KeyError: 'x'"),
    ]))  # fmt: skip
    assert report.errors == {"rate_limit": 1, "server_error": 1, "arguments": 1, "context": 1, "harness": 1}
    assert (report.published.total, report.published.n) == (2, 8)
    assert report.scores["errors_dropped"].rate == pytest.approx(2 / 3)
    # The model's own errors stay failures; the unknown one leaves bounds.
    assert (report.low, report.high) == (pytest.approx(2 / 6), pytest.approx(3 / 6))
    assert answer(report).startswith(
        "5 of 8 simulations ended in an error and were counted as failures: 25.0 %"
    )


def test_pass_k(tmp_path: Path) -> None:
    report = read(tau_file(tmp_path, [tau(0, 1, 0), tau(0, 1, 1), tau(1, 1, 0), tau(1, 0, 1)]))
    assert report.published.pass_k == {"1": pytest.approx(0.75), "2": pytest.approx(0.5)}
    assert report.errors == {} and "stands" in answer(report)


def test_calls_left_in_a_reply_are_found(tmp_path: Path) -> None:
    report = read(tau_file(tmp_path, [tau(0, 0, text=CALL), tau(1, 1)]))
    assert (report.left, report.left_replies) == (1, 1)
    assert [entry.task for entry in report.entries] == ["0"]


def test_a_text_agents_own_calls_are_not_left_behind(tmp_path: Path) -> None:
    item = tau(0, 1)
    item["traj"] = [
        {"role": "assistant", "content": CALL}, {"role": "user", "content": "API output: {}"},
        {"role": "assistant", "content": "Done."},
    ]  # fmt: skip
    assert read(tau_file(tmp_path, [item])).left == 0


def test_the_wrong_kind_is_told(tmp_path: Path) -> None:
    report = read(tau_file(tmp_path, [tau(0, 1)]), "tau2")
    assert report.simulations == 0 and "an object with simulations" in report.bad[0].reason


def test_a_cut_off_file_gives_what_stands_before(tmp_path: Path) -> None:
    path = tau_file(tmp_path, [tau(0, 1), tau(1, 0), tau(2, 1), "hostile", {"task_id": 1}])
    whole = path.read_text()
    assert (read(path).simulations, len(read(path).bad)) == (3, 2)
    path.write_text(whole[: whole.index('"task_id": 2')])
    report = read(path)
    assert report.simulations == 2 and "torn" in report.bad[0].reason
    path.write_text("not json")
    assert read(path).simulations == 0


def test_tau2_drops_and_the_score_with_them(tmp_path: Path) -> None:
    items = [tau2("a", 1.0), tau2("leak", 0.0), tau2("c", None, "infrastructure_error"), tau2("d", 1.0)]
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"timestamp": "t", "info": {}, "tasks": [], "simulations": items}))
    report = read(path, "tau2")
    assert (report.published.total, report.published.n) == (2, 3)
    assert report.scores["errors_as_failures"].rate == 0.5
    assert report.errors == {"infrastructure": 1}
    assert report.left == 1  # raw_data is asked first
    assert "were left out: 66.7 % as published, 50.0 % with them counted as failures" in answer(report)
    path.write_text(path.read_text()[:-80])
    assert read(path, "tau2").simulations == 3


def test_tau2_folder_with_one_file_a_simulation(tmp_path: Path) -> None:
    (tmp_path / "simulations").mkdir()
    (tmp_path / "results.json").write_text(json.dumps({"info": {}, "tasks": [], "timestamp": "t"}))
    for trial in range(2):
        item = tau2("a", float(trial), trial=trial)
        (tmp_path / "simulations" / f"{trial}.json").write_text(json.dumps(item))
    report = read(tmp_path, "tau2")
    assert (report.simulations, report.tasks) == (2, 1)
    assert report.published.pass_k == {"1": 0.5, "2": 0.0}


@pytest.mark.parametrize("kind", ["tau-bench", "tau2"])
def test_lone_surrogates_reach_the_report(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "results.json"
    odd = "caf\ud83d"
    if kind == "tau-bench":
        path.write_text(json.dumps([{**tau(0, 1.0, text=odd), "task_id": odd}, tau(1, 0, error=odd)]))
    else:
        path.write_text(json.dumps({"simulations": [{**tau2(odd, 1.0), "trial": odd}]}))
    report = read(path, kind)
    assert report.bad == () and msgspec.json.encode(report)


def test_no_files_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no tau-bench result files"):
        read(tmp_path)
