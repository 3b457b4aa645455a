"""A chat server in this process that gives set answers, and what the makers have in common."""

from __future__ import annotations

import http.server
import json
import threading
from typing import Any

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}]
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


def serve(answers: list[dict[str, Any]]) -> str:
    """The base URL of a server that answers with one message after another, then with status 500."""
    left = list(answers)

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            if left:
                message = left.pop(0)
                finish = "tool_calls" if message.get("tool_calls") else "stop"
                choice = {"index": 0, "message": message, "finish_reason": finish}
                usage = {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30}
                body: Any = {"id": "x", "object": "chat.completion", "created": 1, "model": "m"}
                body |= {"choices": [choice], "usage": usage}
                status = 200
            else:
                body, status = {"error": {"message": "boom", "type": "server_error"}}, 500
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1"
