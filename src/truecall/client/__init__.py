"""Sends one HTTP exchange and says what came back or how it failed; a server's behaviour is never raised."""

from truecall.client.patience import parse_retry_after, send_patiently
from truecall.client.session import MAX_BODY, Client

__all__ = ["MAX_BODY", "Client", "parse_retry_after", "send_patiently"]
