"""The fault server, for parsers that are asked through a running server."""

from tests.fault_server import fault_server

__all__ = ["fault_server"]
