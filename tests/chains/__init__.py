"""Random pipelines, written once for two libraries, each step with a model of it in plain Python.

``model`` defines steps, and ``kinds`` the kinds of elements. ``sources`` start a pipeline. ``steps`` preserve the kind
of the elements and ``changes`` do not; ``sequences`` combine several elements; ``inner`` has the steps with nested
pipelines. Tests draw pipelines from ``strategies``.
"""
