"""Lazily imported libraries that only some formats need. Importing them takes half as long as importing the rest.

They are required dependencies of the package, not extras.
"""

from dataset.lazy_imports import lazy_imports

with lazy_imports():
    from crc32c import crc32c  # slow: it looks up its own version with the e-mail parser
    from google.protobuf import message as protobuf

__all__ = ["crc32c", "protobuf"]
