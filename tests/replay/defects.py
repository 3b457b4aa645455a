"""Parser defects that were run on vLLM 0.32.0, SGLang 0.5.23 and verl 0.9.1, and the layer of each.

A row: id, engine, parsers, the texts (cases of ``data/recorded.jsonl``), the layers that are right for the lost calls
whole, and what must be so while streaming (``split``: other calls than whole; "": not asked).
"""

from __future__ import annotations

from typing import NamedTuple


class Defect(NamedTuple):
    """A row of the list. ``layers``: one for each emitted call, a set where parsers differ."""

    id: str
    engine: str
    parsers: tuple[str, ...]
    cases: tuple[str, ...]
    layers: tuple[str, ...]
    split: bool = False
    phantom: bool = False


def _row(line: str) -> Defect:
    id, engine, parsers, cases, layers, *more = line.split()
    return Defect(
        id,
        engine,
        tuple(parsers.split(",")),
        tuple(cases.split(",")),
        tuple(layers.split(",")) if layers != "-" else (),
        "split" in more,
        "phantom" in more,
    )


DEFECTS = [
    _row(line)
    for line in """
D01 vllm qwen3_coder,qwen3_xml,step3p5,mimo,glm45,glm47,ling3 hermes erased
D02 sglang glm,glm45,glm47,ling3,mimo,poolside_v1,qwen3_coder,step3p5,nanbeige,spark25 hermes erased
D03 sglang qwen25 q3c,hermes_trailbrace,hermes_noclose,hermes_pyargs,hermes_rawnl erased
D04 sglang qwen25,qwen hermes_nonl no_envelope
D05 vllm qwen3_coder,qwen3_xml,seed_oss,step3p5,mimo fn31 mangled
D06 vllm poolside_v1 hermes mangled
D06 verl glm hermes mangled
D07 vllm mistral mistral_callid mangled
D07 sglang mistral mistral_callid erased
D08 vllm functiongemma functiongemma mangled
D09 vllm qwen3_coder q3c_noparamclose mangled
D09 sglang mimo q3c_noparamclose mangled
D09 sglang qwen3_coder q3c_noparamclose returned
D09 verl qwen3_coder q3c_noparamclose mangled
D10 vllm ernie45 hermes_parameters mangled
D11 vllm hermes,llama3_json,ernie45 hermes_strargs mangled
D11 vllm granite4 hermes_strargs returned
D11 sglang hermes,qwen25 hermes_strargs mangled
D11 verl hermes hermes_strargs mangled
D12 vllm hermes hermes_2nd_bad trailing_text,bad_payload
D12 sglang qwen25 hermes_2nd_bad returned,erased
D12 verl hermes hermes_2nd_bad returned,erased
D13 vllm hermes hermes_intag parser_loss
D13 sglang hermes hermes_intag parser_loss
D13 sglang qwen25 hermes_intag returned
D13 verl hermes hermes_intag erased
D14 sglang hermes hermes_rawnl bad_payload split
D14 sglang qwen25 hermes_rawnl erased split
D15 sglang hermes hermes_trailbrace bad_payload split
D15 sglang qwen25 hermes_trailbrace erased split
D16 sglang hermes,qwen25,trinity hermes_noargs returned split
D17 sglang llama3 bare_prose_first trailing_text split
D17 sglang llama3 fence,toolstag,hermes no_envelope split
D18 vllm llama3_json,llama4_json fence,toolstag,bare_list,bare_prose_first returned split
D19 vllm phi4_mini_json phi4mini returned split
D20 sglang hermes,qwen25 hermes_unknown wrong_name_dropped
D21 vllm pythonic,llama4_pythonic pythonic_underscore parser_loss
D21 sglang pythonic pythonic_underscore parser_loss
D22 vllm pythonic,llama4_pythonic pythonic_text trailing_text
D22 sglang pythonic pythonic_text returned
D23 sglang pythonic pythonic_null erased
D23 vllm pythonic pythonic_null returned
D24 vllm kimi_k2 kimi_noid erased
D24 sglang kimi_k2 kimi_noid erased
D24 verl kimi kimi_noid returned
D25 vllm deepseek_v31 dsv31_noouter no_envelope
D25 sglang deepseekv31 dsv31_noouter no_envelope
D26 vllm deepseek_v3 dsv31 erased
D26 vllm deepseek_v31 dsv3 erased
D27 vllm hermes,qwen3_coder,mistral fence,toolstag,bare no_envelope
D27 sglang hermes,qwen25,qwen3_coder fence,toolstag,bare no_envelope
D27 verl hermes fence,toolstag,bare no_envelope
D28 sglang qwen3_coder q3c_noopen no_envelope
D28 vllm qwen3_coder q3c_noopen returned
D29 vllm hermes hermes_in_think - phantom
D29 sglang hermes hermes_in_think - phantom
D29 verl hermes hermes_in_think - phantom
D38 sglang interns1 internlm no_envelope
D38 vllm internlm internlm returned
D39 sglang gpt-oss harmony_rolefirst no_envelope
D40 verl hermes hermes_noargs,hermes_parameters,hermes_trailbrace,hermes_pyargs,hermes_rawnl,q3c erased
D41 vllm hermes,qwen3_json hermes_trailbrace bad_payload split
D42 vllm qwen3_coder,qwen3_xml,seed_oss,step3p5 q3c_noparamclose mangled split
D43 vllm hermes hermes_2nd_bad trailing_text,bad_payload split
""".strip().splitlines()
]
"""D37 is by design, D30 to D36 are not of the parsers alone: see the engines' issues."""
