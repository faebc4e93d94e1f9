"""Random pipelines, written once for two libraries, each step beside a model of it in plain Python.

``model`` is what a step is, ``kinds`` says what elements are like. ``sources`` begin a pipeline; ``steps`` keep what
elements are, ``changes`` do not, ``sequences`` look at several elements to make one; ``inner`` holds the steps that
have pipelines in them. Tests draw pipelines from ``strategies``.
"""
