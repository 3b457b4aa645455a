"""Errors about the request itself, or about what the model wrote, whichever engine says them.

Sources: the engines' sources and live servers (``docs/findings/contracts.md``), and the public error texts of
hosted services. The order matters: the first match wins.
"""

from __future__ import annotations

from truecall.records import Delivery, Part
from truecall.stacks.refusals import Pattern

# The model ran; its text was lost or stands in the error.
AFTER_GENERATION: tuple[Pattern, ...] = (
    Pattern(
        rule="groq.tool_use_failed",
        match=(
            r"\btool_use_failed\b",
            r"failed to call a function\. please adjust",
            r"tool call validation failed",
            r"\bfailed_generation\b",
        ),
        part=Part.PARSER,
        ran=True,
        attempted=True,
        delivery=Delivery.ERASED,
        title="the service rejected the call that the model wrote",
        change="read failed_generation in the error; relax the schema, or catch this error and parse it",
    ),
    Pattern(
        rule="parser.tool_call_failed",
        match=(
            r"(error|fail(ed|ure)) (in |while )?(to )?pars(e|ing) (the )"
            r"?(model'?s? )?(tool|function)[ _]calls?(?! arguments| args)",
            r"tool[ _]call pars(ing|er) (error|failed|exception)",
            r"malformed[ _]function[ _]call",
            r"model generated output that could not be parsed",
        ),
        part=Part.PARSER,
        ran=True,
        attempted=True,
        delivery=Delivery.ERASED,
        title="the server's parser failed on what the model wrote",
        change="use the parser that belongs to the model's dialect",
    ),
)

# What the harness sent back as history.
HISTORY: tuple[Pattern, ...] = (
    Pattern(
        rule="history.bad_arguments",
        match=(
            r"failed to parse tool call arguments",
            r"invalid tool call arguments",
            r"(function\.?|tool[ _]call[s]?.{0,30}|function_call\.?)"
            r"arguments\b.{0,60}(valid json|json format|json string)",
            r"invalid function arguments json",
            r"function\.arguments.{0,40}input should be",
            r"cannot unmarshal .{0,60}tool_calls\.function\.arguments",
            r"anthropicexception.{0,40}(parse|invalid).{0,30}arguments",
        ),
        part=Part.HARNESS,
        title="an earlier call in the history has arguments that are not valid JSON",
        change="repair or leave out the broken tool_calls entry in messages before sending them again",
    ),
    Pattern(
        rule="history.arguments_not_object",
        match=(
            r"can only get item pairs from a mapping",
            r"'str' object has no attribute 'items'",
            r"tool_calls?.{0,80}arguments.{0,40}(must|should) be (a |an )?(dict|object|mapping)",
        ),
        part=Part.HARNESS,
        title="the chat template needs the arguments of earlier calls as an object and got a string",
        change="send the history's arguments as the server expects them, or use a template that reads both",
    ),
    Pattern(
        rule="history.tool_ids",
        match=(
            r"tool_call_ids? did not have response",
            r"must be followed by tool messages",
            r"must be a response to a prece+ding message with .?tool_calls",
            r"tool_use.{0,40}ids were found without .?tool_result",
            r"unexpected .?tool_use_id",
            r"not the same number of function calls and responses",
            r"tool call id was .{0,80} but must be",
            r"number of function response parts",
            r"function (call|response) turn comes immediately after",
        ),
        part=Part.HARNESS,
        title="calls and tool results in the history do not belong together",
        change="send one tool message for each call, with its tool_call_id, right after the "
        "assistant message",
    ),
    Pattern(
        rule="history.missing_signature",
        match=(r"missing a .?thought_signature",),
        part=Part.HARNESS,
        title="an earlier call in the history lacks the signature that came with it",
        change="send each functionCall back with its thoughtSignature, as it came",
    ),
    Pattern(
        rule="history.bad_json",
        match=(
            r"(extra data|unterminated string starting at|invalid control character at|invalid \\?escape"
            r"|expecting (value|property name enclosed in double quotes|'[,:]' delimiter))"
            r": line \d+ column \d+ \(char \d+\)",
        ),
        part=Part.HARNESS,
        statuses=(400, 422, 500),
        title="the server could not parse JSON in the request, most likely the arguments of an earlier call",
        change="check each arguments string in messages: it must hold one JSON object",
    ),
)

# What this request asked for.
REQUEST: tuple[Pattern, ...] = (
    Pattern(
        rule="request.tool_choice_without_tools",
        match=(
            r"tools cannot be empty if tool choice",
            r"when using .?tool_choice.?, .?tools.? must be set",
            r"tool_choice.{0,40}(only|not) (be )?(allowed|specified|v"
            r"alid|supported).{0,40}(when|without|unless).{0,20}tools",
        ),
        part=Part.HARNESS,
        title="tool_choice was sent without tools",
        change="send tools, or leave tool_choice away",
    ),
    Pattern(
        rule="request.empty_tools",
        match=(
            r"tools.? must not be an empty",
            r"\[\] is too short.{0,20}tools",
            r"invalid .?tools.?: empty array",
            r"tools.{0,40}(at least (1|one) (item|tool)|too_short|minimum length 1)",
        ),
        part=Part.HARNESS,
        title="tools was sent as an empty list",
        change="leave the field tools away when there is no tool",
    ),
    Pattern(
        rule="request.unknown_tool",
        match=(
            r"tool specified in .?tool_choice.? does not match",
            r"tool .{1,80} not found in (the )?(provided )?tools?",
            r"tool with name .{1,120} not found",
            r"tool choice .{0,60}not found in .?tools",
        ),
        part=Part.HARNESS,
        title="tool_choice names a tool that is not in tools",
        change="name a tool that the same request offers",
    ),
    Pattern(
        rule="request.bad_tool",
        match=(
            r"tools?\b.{0,12}\.?function\.name",
            r"tool names must be unique",
            r"duplicate (tool|function)",
            r"invalid .{0,12}(tool|function) name",
            r"tools: input tag",
            r"cannot unmarshal .{0,60}chatrequest\.tools",
        ),
        part=Part.HARNESS,
        title="a tool's definition is not one that the server takes",
        change="give each tool the form of this API and a name of its own, in letters, digits, _ and -",
    ),
    Pattern(
        rule="request.bad_schema",
        match=(
            r"invalid .?parameters.? schema",
            r"invalid schema for function",
            r"invalid_function_parameters",
            r"json schema conversion failed",
            r"unrecognized schema",
            r"schema.{0,40}(to|into) grammar",
            r"failed to (initialize|parse) (grammar|samplers)",
            r"json schema.{0,60}(is invalid|not supported|is not valid)",
            r"(in)?valid json schema",
            r"invalid grammar",
            r"tools\b.{0,80}(input_schema|function_declaration"
            r"s).{0,160}(invalid|required|unknown|unsupported)",
            r"unsupported.{0,40}json schema",
            r"body\.tools\.\d+\.\S{0,60}parameters",
        ),
        part=Part.HARNESS,
        title="a tool's parameters are no schema that the server takes",
        change="make parameters a JSON Schema object that the server's grammar supports",
    ),
    Pattern(
        rule="request.constraint_conflict",
        match=(
            r"custom grammar constraints with tools",
            r"(only use one|multiple) kinds? of (structured|guided|constraint)",
            r"(response_format|guided|structured).{0,60}(cannot|ca"
            r"n't|can not|not).{0,40}(with|together).{0,20}tools?\b",
        ),
        part=Part.HARNESS,
        title="tools and another output constraint were sent in one request",
        change="send either tools or the grammar, not both",
    ),
    Pattern(
        rule="request.bad_tool_choice",
        match=(
            r"invalid (value for )?.?tool_choice",
            r"tool_choice.{0,40}(must be|should be|is not one of|not supported|unsupported)",
            r"(unsupported|unknown|invalid|unrecognized) tool[ _]choice",
            r"loc.{0,8}body.{0,6}tool_choice",
            r"body\.tool_choice",
            r"supported values are: .?none.?, .?auto.?, and .?required",
        ),
        part=Part.HARNESS,
        title="the server does not know this value of tool_choice",
        change='use "auto", "required", "none" or a named function, as far as the server knows them',
    ),
    Pattern(
        rule="request.context_too_long",
        match=(
            r"maximum context length",
            r"context_length_exceeded",
            r"exceed_context_size",
            r"available context size",
            r"prompt is too long",
            r"longer than (the|this) (maximum )?model'?s? ?(context )?length",
            r"contextwindowexceeded",
            r"(input|prompt|request).{0,60}(exceeds?|longer than|t"
            r"oo (long|large)).{0,60}(context|limit|maximum|tokens)",
            r"input validation error: .?inputs.? (tokens|must have less)",
            r"reduce the length of the (messages|input|prompt)",
            r"first \d+ tokens when context",
            r"input token count.{0,40}exceeds",
            r"initial prompt is greater than the context length",
        ),
        part=Part.BUDGET,
        title="the prompt with its tools does not fit into the context",
        change="send fewer or shorter tools and messages, or serve the model with a longer context",
    ),
    Pattern(
        rule="request.max_tokens",
        match=(
            r"max_(completion_|new_)?tokens.{0,60}(too large|mu"
            r"st be|exceeds?|less than|greater|at (most|least))",
        ),
        part=Part.BUDGET,
        title="max_tokens is outside of what the server takes",
        change="send a smaller max_tokens",
    ),
    Pattern(
        rule="request.unknown_field",
        match=(
            r"extra inputs are not permitted",
            r"extra_forbidden",
            r"does not support thinking",
            r"unrecognized request argument",
            r"unknown (parameter|field|name)",
            r"unsupported[_ ](parameter|value)",
            r"parallel_tool_calls.{0,20} not supported",
            r"property .{1,60} is unsupported",
            r"unexpected keyword argument",
            r"additional properties",
            r"logprobs.{0,60}(not|un)[ ]?(supported|allowed|available|enabled)",
            r"parameter .{1,60} is not (supported|allowed)",
        ),
        part=Part.HARNESS,
        title="the server refuses a field of the request",
        change="leave the field away",
    ),
    Pattern(
        rule="request.not_json",
        match=(
            r"json decode error",
            r"\[json\.exception\.parse_error",
            r"json_invalid",
            r"could not parse the json body",
            r"invalid json (body|payload)",
            r"request body is not valid json",
        ),
        part=Part.HARNESS,
        title="the request's body is not JSON",
        change="send a JSON body with content-type application/json",
    ),
)
