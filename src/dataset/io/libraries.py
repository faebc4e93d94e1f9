"""Libraries that only some formats need, loaded when they are first asked for: together, half as long as all the rest.

They are no extras: each is there. What is here is used as the module would be: ``castagnoli.crc32c(data)``.
"""

from dataset.extras import LazyModule

__all__ = ["castagnoli", "messages", "protobuf"]

castagnoli = LazyModule("crc32c")
"""CRC-32C, by Guy Castagnoli; looks up its own version when it is imported, with a parser of e-mails."""

messages = LazyModule("dataset.io.example.messages")
"""The message classes, which are built when that file is imported."""

protobuf = LazyModule("google.protobuf.message")
