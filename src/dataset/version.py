"""The version of the library, which saved states name, too."""

__version__ = "0.1.0"
