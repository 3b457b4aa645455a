"""Writes OUT/my-model/samples_….jsonl with lm-eval's own command."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from answers import CALL, TOOLS, serve

TASK = """
task: weather
dataset_path: json
dataset_kwargs:
  data_files: {questions}
test_split: train
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
generation_kwargs:
  until: ["\\n\\n"]
metric_list:
  - metric: exact_match
"""


def main() -> None:
    out = Path(sys.argv[1])
    tasks = out / "tasks"
    tasks.mkdir(parents=True, exist_ok=True)
    entries = [
        {"question": f"Weather in {c}?", "answer": "sunny", "tools": TOOLS}
        for c in ("Oslo", "Lisbon", "Rome")
    ]
    (tasks / "questions.jsonl").write_text("\n".join(map(json.dumps, entries)))
    (tasks / "weather.yaml").write_text(TASK.format(questions=(tasks / "questions.jsonl").resolve()))
    answers = (CALL, "I can't tell.", "get_weather(city='Oslo')")
    url = serve([{"role": "assistant", "content": text} for text in answers])
    os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "OPENAI_API_KEY": "none"}

    from lm_eval.__main__ import cli_evaluate  # reads the environment when it is imported

    model = f"model=my-model,base_url={url}/chat/completions,tokenizer_backend=None,num_concurrent=1"
    sys.argv = [
        "lm-eval",
        "run",
        "--model",
        "local-chat-completions",
        "--model_args",
        model,
        "--tasks",
        "weather",
    ]
    sys.argv += [
        "--include_path",
        str(tasks),
        "--apply_chat_template",
        "--log_samples",
        "--output_path",
        str(out),
    ]
    cli_evaluate()


if __name__ == "__main__":
    main()
