"""What to change about a finding where the engine makes no difference. Ids are those of preflight's findings."""

from __future__ import annotations

from collections.abc import Mapping

COMMON: Mapping[str, str] = {
    "tools-not-rendered": "serve a chat template that renders tools, or describe the tools in the system message",
    "context-cut": "serve the model with a longer context, or send fewer and shorter tools",
    "parser-mismatch": "configure the server's tool-call parser for the dialect that the template asks for",
    "no-parser": "configure a tool-call parser on the server",
    "required-not-enforced": 'do not rely on tool_choice "required" on this stack: check each answer for a call',
    "named-ignored": "do not rely on a named tool on this stack: offer only the tool that should be called",
    "none-not-respected": "leave tools away in requests that must not end in a call",
    "strict-not-enforced": "check arguments against their schema before a call is executed",
    "arguments-against-schema": "check arguments against their schema before a call is executed",
    "finish-reason-lies": "look at the calls and at usage instead of finish_reason",
    "load-changes-outcome": "send fewer requests at once, and look for batching or cache faults in the server's log",
    "phantom-call": "do not execute this stack's calls unseen; upgrade the engine or change its parser",
    "stream-differs": "send requests with tools without streaming, or upgrade the engine: its two parsers differ",
    "stream-form": "upgrade the engine, or send requests with tools without streaming",
    "tool-result-not-rendered": "serve a chat template that renders messages of the role tool",
    "bad-schema-breaks": "check schemas on the client's side: the server does not",
}

PARSER_FINDINGS = frozenset({"parser-mismatch", "no-parser"})
"""Findings that another parser would mend; so would those whose id ends in ``LOST``."""
LOST = ("-leaked", "-erased")
