"""The version of the library. Saved states record it, too."""

__version__ = "0.1.0"
