"""Tasks: made from the seed alone, solvable by their own solution, and checked by what really ran."""

from __future__ import annotations

import copy
import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from truecall import tasks
from truecall.errors import InputError, UsageError
from truecall.sandbox import Sandbox
from truecall.schema import check
from truecall.tasks import SCHEMAS, Call
from truecall.tasks.code import Code, problems

SEEDED = ("aggregate", "chain", "abstain")


@pytest.mark.parametrize("name", ["aggregate", "chain"])
async def test_its_own_solution_solves_every_instance(name: str) -> None:
    task = tasks.get(name)
    answers = set()
    for seed in range(60):
        instance = task.make(seed)
        offered = {t["function"]["name"]: t["function"]["parameters"] for t in instance.tools("strict")}
        state = instance.start()
        for call in instance.solution:
            assert state.passed is False and not state.ended
            assert check(call.arguments, offered[call.name]) == ()
            result = await state.call(call)
            assert not result.error and result.new, (seed, call, result)
        assert state.passed is True and state.ended
        answers.add(json.dumps(instance.solution[-1].arguments))
    assert len(answers) > 10


@pytest.mark.parametrize("name", SEEDED)
def test_an_instance_is_made_from_its_seed_alone(name: str) -> None:
    def shape(seed: int) -> Any:
        instance = tasks.get(name).make(seed)
        return instance.prompt, instance.tools("rich"), instance.solution

    assert [shape(seed) for seed in range(20)] == [shape(seed) for seed in range(20)]
    assert len({json.dumps(shape(seed)[:2]) for seed in range(40)}) > 20


def test_instances_are_the_same_in_every_version() -> None:
    """These may never change: published runs name them by seed."""
    aggregate, chain = tasks.get("aggregate").make(3), tasks.get("chain").make(3)
    assert (aggregate.prompt, aggregate.solution[-1].arguments) == PINNED["aggregate"]
    assert (chain.prompt, chain.solution[-1].arguments) == PINNED["chain"]
    assert tasks.get("abstain").make(3).prompt == PINNED["abstain"]


PINNED: dict[str, Any] = json.loads((Path(__file__).parent / "pinned.json").read_text(), object_hook=lambda d: {
    k: tuple(v) if isinstance(v, list) else v for k, v in d.items()
})  # fmt: skip


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("aggregate", Call(name="read_file", arguments={"name": "../etc/passwd"})),
        ("aggregate", Call(name="read_file", arguments={})),
        ("aggregate", Call(name="compute", arguments={"operation": "sum", "values": ["a"]})),
        ("aggregate", Call(name="compute", arguments={"operation": "sum", "values": []})),
        ("aggregate", Call(name="submit", arguments={"answer": True})),
        ("aggregate", Call(name="delete", arguments={})),
        ("chain", Call(name="open_box", arguments={"code": ["x"]})),
        ("chain", Call(name="submit", arguments={"word": 5})),
        ("chain", Call(name="nothing", arguments={})),
    ],
)
async def test_a_senseless_call_is_a_result(name: str, call: Call) -> None:
    state = tasks.get(name).make(0).start()
    result = await state.call(call)
    assert result.error and result.text.startswith("Error") and not state.ended and state.passed is False


async def test_a_wrong_answer_is_no_pass_and_a_repeated_step_is_nothing_new() -> None:
    instance = tasks.get("aggregate").make(0)
    state = instance.start()
    assert (await state.call(Call(name="list_files", arguments={}))).new
    assert not (await state.call(Call(name="list_files", arguments={}))).new
    await state.call(Call(name="submit", arguments={"answer": instance.solution[-1].arguments["answer"] + 1}))
    assert state.ended and state.passed is False


async def test_the_chain_can_not_be_skipped() -> None:
    instance = tasks.get("chain").make(1)
    last = instance.solution[-2]
    assert (await instance.start().call(last)).error


async def test_abstaining() -> None:
    instance = tasks.get("abstain").make(0)
    for calls, passed in (([], True), ([Call(name="x", arguments={})], False)):
        state = instance.start()
        await state.close(calls)
        assert state.passed is passed and instance.expected is False


def test_variants_of_a_schema() -> None:
    terse, rich, strict = (tasks.get("chain").make(0).tools(v)[0]["function"] for v in SCHEMAS)
    assert "strict" not in terse and strict["strict"] is True
    assert (
        strict["parameters"]["additionalProperties"] is False
        and terse["description"] == strict["description"]
    )
    assert len(rich["description"]) > len(terse["description"])
    assert "description" in rich["parameters"]["properties"]["code"]


# --------------------------------------------------------------------------- the bank of problems


def solutions() -> dict[str, Any]:
    rooms = [importlib.import_module(f"tests.studies.solutions.grade{grade}") for grade in range(1, 6)]
    return {name: value for room in rooms for name, value in vars(room).items() if callable(value)}


def test_the_bank_has_a_hundred_distinct_graded_problems() -> None:
    bank = problems()
    assert len(bank) == 100 == len({p.name for p in bank}) == len({p.text for p in bank})
    assert [p.grade for p in bank] == [grade for grade in range(1, 6) for _ in range(20)]
    for problem in bank:
        assert problem.signature.startswith(f"{problem.name}(") and len(problem.tests) >= 4, problem.name
        assert len({json.dumps(value) for _, value in problem.tests}) > 1, problem.name


@pytest.mark.parametrize("problem", problems(), ids=lambda p: p.name)
def test_a_reference_solution_passes_every_test(problem: Any) -> None:
    function = solutions()[problem.name]
    for arguments, value in problem.tests:
        got = json.loads(json.dumps(function(*copy.deepcopy(arguments))))
        assert got == value and type(got) is type(value), arguments


def test_no_constant_and_no_echo_passes_a_problem() -> None:
    for problem in problems():
        values = [value for _, value in problem.tests]
        assert any(value != values[0] for value in values)
        assert any(not arguments or arguments[0] != value for arguments, value in problem.tests), problem.name


# --------------------------------------------------------------------------- the sandbox


@pytest.fixture(scope="module")
def sandbox() -> Sandbox:
    try:
        return Sandbox(seconds=5)
    except UsageError as error:
        pytest.skip(str(error))


async def test_code_is_tested_in_the_sandbox(sandbox: Sandbox) -> None:
    source = (Path(__file__).parent / "solutions" / "grade3.py").read_text()
    instance = Code(sandbox).make(40)
    assert instance.item == "code:roman"
    state = instance.start()
    wrong = await state.call(Call(name="run_tests", arguments={"code": "def roman(n):\n    return 'XIV'"}))
    assert (
        wrong.text.startswith("1 of 6 tests pass. roman(1) returned 'XIV'") and wrong.new and not state.ended
    )
    again = await state.call(Call(name="run_tests", arguments={"code": "def roman(n):\n    return 'XIV'"}))
    assert not again.new
    broken = await state.call(Call(name="run_tests", arguments={"code": "def roman(n)\n    return 1"}))
    assert "SyntaxError" in broken.text
    assert (await state.call(Call(name="roman", arguments={"n": 3}))).error
    right = await state.call(Call(name="run_tests", arguments={"code": source}))
    assert right.text == "All 6 tests pass." and state.passed is True and state.ended


@pytest.mark.parametrize(
    ("code", "state"),
    [
        ("def f():\n    while True: pass", "timeout"),
        ("def f():\n    return len(bytearray(900 << 20))", "ok"),  # a MemoryError of the call's own
        ("def f():\n    import os; os._exit(0)", "killed"),
        ("raise SystemExit", "error"),
        ('import sys; print(\'{"values": [{"value": 1}]}\'); sys.exit()', "error"),
        ("def f():\n    return 'x' * (30 << 20)", "killed"),
    ],
)
async def test_what_code_does_is_data(code: str, state: str) -> None:
    try:
        box = Sandbox(seconds=1.5)
    except UsageError as error:
        pytest.skip(str(error))
    ran = await box.run(code, [("f", [])])
    assert ran.state == state, ran
    assert state != "ok" or "MemoryError" in str(ran.values[0]["error"])


async def test_code_sees_no_network_no_files_of_the_user_and_no_answers(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("42")
    code = f"""
import os, socket
def network():
    try:
        socket.create_connection(("127.0.0.1", 9), 1)
    except OSError as error:
        return type(error).__name__ + str(error.errno)
def interfaces():
    return [name for _, name in socket.if_nameindex()]
def files():
    return [os.path.exists(p) for p in ({str(secret)!r}, {__file__!r}, {str(Path.home())!r}, "/home")]
def write():
    open("/usr/x", "w")
def processes():
    return len([p for p in os.listdir("/proc") if p.isdigit()])
def environment():
    return sorted(os.environ)
"""
    names = ("network", "interfaces", "files", "write", "processes", "environment")
    ran = await sandbox.run(code, [(name, []) for name in names])
    network, interfaces, files, write, processes, environment = ran.values
    assert interfaces["value"] == ["lo"] and network["value"].startswith("ConnectionRefused")
    assert files["value"] == [False] * 4 and "error" in write
    assert processes["value"] < 5 and not {"OPENAI_API_KEY", "USER"} & set(environment["value"])


def test_without_bubblewrap_nothing_runs_unless_the_user_insists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(UsageError, match="--unsafe-sandbox"):
        Sandbox()
    assert Sandbox(unsafe=True).unsafe


async def test_the_unsafe_way_keeps_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    box = Sandbox(unsafe=True, seconds=1)
    assert (await box.run("def f(a):\n    return a + 1", [("f", [1])])).values == ({"value": 2},)
    assert (await box.run("while True: pass", [])).state == "timeout"


# --------------------------------------------------------------------------- other people's data


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRUECALL_BFCL", str(tmp_path))
    with pytest.raises(UsageError, match="TRUECALL_BFCL"):
        tasks.get("bfcl:simple_python")
    with pytest.raises(UsageError, match="no BFCL category"):
        tasks.get("bfcl:multi_turn_base")
    with pytest.raises(UsageError, match="no task"):
        tasks.get("beauty")
    (tmp_path / "BFCL_v4_irrelevance.json").write_text("{")
    with pytest.raises(InputError, match="JSON lines"):
        tasks.get("bfcl:irrelevance")


def bfcl_folder(path: Path) -> None:
    function = {
        "name": "math.area", "description": "Area of a triangle.",
        "parameters": {"type": "dict", "properties": {
            "base": {"type": "integer"}, "height": {"type": "float"}, "unit": {"type": "string"},
        }, "required": ["base", "height"]},
    }  # fmt: skip
    ask = [[{"role": "system", "content": "Be exact."}, {"role": "user", "content": "Area of 10 by 5?"}]]
    truth = [{"math.area": {"base": [10], "height": [5.0], "unit": ["cm", ""]}}]
    (path / "possible_answer").mkdir(parents=True)
    for category, ground in (("simple_python", truth), ("irrelevance", None), ("live_relevance", None)):
        line = {"id": f"{category}_0", "question": ask, "function": [function]}
        (path / f"BFCL_v4_{category}.json").write_text(json.dumps(line) + "\n")
        if ground:
            answer = {"id": f"{category}_0", "ground_truth": ground}
            (path / "possible_answer" / f"BFCL_v4_{category}.json").write_text(json.dumps(answer))


@pytest.mark.parametrize(
    ("category", "calls", "passed"),
    [
        ("simple_python", [("math_area", {"base": 10, "height": 5})], True),
        ("simple_python", [("math.area", {"base": 10, "height": 5.0, "unit": "CM"})], True),
        ("simple_python", [("math_area", {"base": "10", "height": 5})], False),
        ("simple_python", [("math_area", {"base": 10})], False),
        ("simple_python", [("area", {"base": 10, "height": 5})], False),
        ("simple_python", [], False),
        ("irrelevance", [], True),
        ("irrelevance", [("math_area", {})], False),
        ("live_relevance", [("anything", {})], True),
        ("live_relevance", [], False),
    ],
)
async def test_bfcl_by_its_rules(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, category: str, calls: list[Any], passed: bool
) -> None:
    bfcl_folder(tmp_path)
    monkeypatch.setenv("TRUECALL_BFCL", str(tmp_path))
    task = tasks.get(f"bfcl:{category}")
    instance = task.make(0)
    assert task.count == 1 and instance.turns == 1 and instance.expected is (category != "irrelevance")
    [tool] = instance.tools("terse")
    assert tool["function"]["name"] == "math_area" and "Be exact." in instance.prompt
    types = {k: v["type"] for k, v in tool["function"]["parameters"]["properties"].items()}
    assert types == {"base": "integer", "height": "number", "unit": "string"}
    state = instance.start()
    await state.close([Call(name=name, arguments=arguments) for name, arguments in calls])
    assert state.passed is passed


async def test_bfcl_in_another_language_asks_for_literals(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    function = {
        "name": "Rows.load", "description": "Loads.", "parameters": {"type": "dict", "required": [], "properties": {
            "ids": {"type": "array", "description": "Ids.", "items": {"type": "integer"}},
            "how": {"type": "dict", "description": "How.", "properties": {"deep": {"type": "Boolean"}}},
            "then": {"type": "any", "description": "After it."},
        }},
    }  # fmt: skip
    truth = [{"Rows.load": {"ids": [[1, 2]], "how": [{"deep": [True]}], "then": ["done", ""]}}]
    line = {
        "id": "simple_javascript_0",
        "question": [[{"role": "user", "content": "Load."}]],
        "function": [function],
    }
    (tmp_path / "possible_answer").mkdir()
    (tmp_path / "BFCL_v4_simple_javascript.json").write_text(json.dumps(line))
    answer = json.dumps({"id": "simple_javascript_0", "ground_truth": truth})
    (tmp_path / "possible_answer" / "BFCL_v4_simple_javascript.json").write_text(answer)
    monkeypatch.setenv("TRUECALL_BFCL", str(tmp_path))
    instance = tasks.get("bfcl:simple_javascript").make(0)
    asked = instance.tools("terse")[0]["function"]["parameters"]["properties"]
    assert {name: value["type"] for name, value in asked.items()} == dict.fromkeys(asked, "string")
    assert asked["ids"]["description"] == (
        "Ids. This is JavaScript array type parameter in string representation. "
        "The list elements are of type integer; they are not in string representation."
    )
    assert asked["how"]["description"].endswith('in string representation. {"deep": {"type": "Boolean"}}')
    assert asked["then"]["description"].endswith(
        "can be of any type of JavaScript object in string representation."
    )
    for arguments, passed in (
        ({"ids": "[1, 2]", "how": "{deep: true}"}, True),
        ({"ids": "[1, 2]", "how": "{deep: true}", "then": "done"}, True),
        ({"ids": "['1', '2']", "how": "{deep: true}"}, False),
        ({"ids": [1, 2], "how": {"deep": True}}, False),
    ):
        state = instance.start()
        await state.close([Call(name="Rows_load", arguments=arguments)])
        assert state.passed is passed, arguments


async def test_humaneval_runs_the_benchmarks_own_check(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sandbox: Sandbox
) -> None:
    line = {
        "task_id": "HumanEval/0", "entry_point": "double",
        "prompt": "from typing import List\n\n\ndef double(x: List[int]) -> List[int]:\n    \"\"\"Twice each.\"\"\"\n",
        "canonical_solution": "    return [2 * v for v in x]\n",
        "test": "def check(candidate):\n    assert candidate([1, 2]) == [2, 4]\n",
    }  # fmt: skip
    file = tmp_path / "HumanEval.jsonl"
    file.write_text(json.dumps(line))
    monkeypatch.setenv("TRUECALL_HUMANEVAL", str(file))
    instance = tasks.get("humaneval", sandbox=sandbox).make(0)
    without_imports = "def double(x: List[int]):\n    return [v + v for v in x]"
    for code, passed in (
        (instance.solution[0].arguments["code"], True),
        (without_imports, True),
        ("def double(x):\n    return x", False),
        ("import os; os._exit(0)", False),
        (5, False),
    ):
        state = instance.start()
        await state.close([Call(name="submit", arguments={"code": code})])
        assert state.passed is passed, code
