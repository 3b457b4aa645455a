"""The TRL callback, on a trainer that holds what TRL's holds; under transformers' own handler where it is at hand.

``TRUECALL_TRL_SITE`` names a site-packages folder with transformers in it; torch is not needed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict, deque
from types import SimpleNamespace
from typing import Any

import pytest

from tests.sources.samples import TEXT_CALL, TOOLS, assistant, call, result
from truecall.integrations.monitor import Monitor
from truecall.integrations.trl import TruecallCallback, count_completion


def trainer(*completions: Any, tools: Any = None) -> Any:
    return SimpleNamespace(
        tools=tools,
        model=SimpleNamespace(training=True),
        _logs={"completion": deque(completions)},
        _metrics={"train": defaultdict(list), "eval": defaultdict(list)},
    )


def test_parsed_completions() -> None:
    parsed = [assistant(None, call(arguments={"city": "Oslo"})), result(), assistant("It is sunny.")]
    one = trainer(parsed, [assistant(TEXT_CALL)], tools=TOOLS)
    said: list[str] = []
    callback = TruecallCallback(one, warn=said.append)
    for _ in range(2):
        callback.on_step_end(None, SimpleNamespace(global_step=1), None)
    metrics = one._metrics["train"]
    assert metrics["truecall/turns"] == [3.0, 3.0] and metrics["truecall/lost"] == [1.0, 1.0]
    assert metrics["truecall/accepted"] == metrics["truecall/observed"] == [1.0, 1.0]
    assert len(said) == 1 and said[0].startswith("truecall: 1 of 2 turns")


def test_decoded_text_says_nothing_of_what_was_accepted() -> None:
    monitor = Monitor(TOOLS)
    count_completion(monitor, TEXT_CALL)
    count_completion(monitor, [assistant(TEXT_CALL)])
    assert monitor.counts["emitted"] == monitor.counts["unknown"] == 2 and monitor.counts["lost"] == 0


def test_a_changed_trainer_ends_no_training() -> None:
    callback = TruecallCallback(SimpleNamespace())
    callback.on_step_end(None, None, None)
    assert callback.monitor.counts["faults"] == 1


_REAL = """
import sys
sys.path.append(sys.argv[1])
from transformers.trainer_callback import CallbackHandler, TrainerCallback, TrainerControl, TrainerState
from tests.integrations.test_trl import trainer
from tests.sources.samples import TEXT_CALL, TOOLS, assistant
from truecall.integrations.trl import TruecallCallback
assert issubclass(TruecallCallback, TrainerCallback)
one = trainer([assistant(TEXT_CALL)], tools=TOOLS)
handler = CallbackHandler([TruecallCallback(one, warn=lambda text: None)], None, None, None, None)
handler.on_train_begin(None, TrainerState(), TrainerControl())
handler.on_step_end(None, TrainerState(), TrainerControl())
print(one._metrics["train"]["truecall/lost"])
"""


@pytest.mark.skipif("TRUECALL_TRL_SITE" not in os.environ, reason="needs TRUECALL_TRL_SITE")
def test_under_the_real_handler() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _REAL, os.environ["TRUECALL_TRL_SITE"]],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("[1.0]")
