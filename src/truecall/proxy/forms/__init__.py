"""How each API writes content and calls, for the wires on which the interface can be swapped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from truecall.proxy.forms.anthropic import Anthropic
from truecall.proxy.forms.base import Event, Form, New
from truecall.proxy.forms.chat import Chat
from truecall.proxy.forms.ollama import Ollama
from truecall.proxy.forms.responses import Responses
from truecall.records import Api

FORMS: Final[Mapping[Api, type[Form]]] = {
    Api.OPENAI_CHAT: Chat,
    Api.OPENAI_RESPONSES: Responses,
    Api.ANTHROPIC: Anthropic,
    Api.OLLAMA_CHAT: Ollama,
}
"""The others pass as they are: text completions have no place for a call, Gemini's was not built."""

__all__ = ["FORMS", "Event", "Form", "New"]
