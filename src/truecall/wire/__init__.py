"""HTTP payloads and streams to records, and back: one file per API.

``read`` takes whatever came back; ``StreamReader`` takes a stream as its bytes arrive; ``read_request``
reads what was asked; ``build``, ``to_chat`` and ``to_sse`` write; ``sniff`` tells the API of a saved body.

``Response.defects`` names what was odd about the form:

===================== ==============================================================================
empty_body            nothing came
not_json              the body is neither JSON nor a stream (HTML, plain text, binary); see ``error``
truncated_json        the body begins as JSON and ends before its value does
too_deep              nested past what can be decoded
invalid_utf8          bytes were replaced by U+FFFD
not_object            a payload is JSON and no object
bad_payload           a payload of a stream is no JSON (cut, or plain words)
missing_blank_line    several payloads came as the data lines of one event
bare_line             a JSON line stood in an event stream outside any ``data:`` field
overflow              a line or event passed the size bound and was dropped
error_event           an error came inside a stream
no_done               a stream ended without its terminator (``[DONE]``, ``done: true``, ``message_stop``, …)
no_finish_reason      some choice never got a finish_reason ("" and null are none)
no_choices            neither a choice nor an error came
message_in_stream     a chunk held a whole ``message`` where a ``delta`` belongs
choice_index_reused   two choices of one body had the same index
index_gap             the tool indices of a stream do not run from 0: some call never came
index_reused          one tool index began a second call; both are kept apart
id_changed            one call's deltas came with different ids; the first stands
missing_index         a tool-call delta had no index: told by its id or name, else it continues the last call
name_repeated         a call's name came again with later deltas
duplicate_chunk       argument pieces came twice, or as snapshots of the whole; kept as received
arguments_not_text    arguments came as JSON where the API has text
flat_call             a call's name and arguments stood outside ``function``
tool_calls_not_list   ``tool_calls`` was no list of objects
legacy_function_call  the call came in ``function_call``
content_not_text      content was neither text, parts nor null
bad_logprobs          ``bytes`` in logprobs were no bytes
done_differs          a finished item says something else than its deltas; the item stands
orphan_delta          a delta came for a block or item that was never begun
===================== ==============================================================================
"""

from __future__ import annotations

from truecall.wire.reader import ASSEMBLERS, StreamReader, read
from truecall.wire.request import RequestView, ToolResult
from truecall.wire.request_shapes import read_request
from truecall.wire.sniff import by_path, sniff
from truecall.wire.write import build, to_chat, to_sse

__all__ = [
    "ASSEMBLERS",
    "RequestView",
    "StreamReader",
    "ToolResult",
    "build",
    "by_path",
    "read",
    "read_request",
    "sniff",
    "to_chat",
    "to_sse",
]
