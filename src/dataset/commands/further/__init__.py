"""The commands besides ``info``, ``index`` and ``verify``."""
