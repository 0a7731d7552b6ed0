"""How infx reaches a cluster's commands and files: here, or over ssh."""

from infx.launch.transport.local import Answer, LocalTransport, Transport

__all__ = ["Answer", "LocalTransport", "Transport"]
