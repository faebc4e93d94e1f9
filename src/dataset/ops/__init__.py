"""One op, one file: the node that describes it, and below it the operator that runs it.

To add an op: its file here, one method in dataset.py, one test file in tests/ops/. Machinery that two ops share is in
runtime/. Open to read; promises nothing to users.
"""
