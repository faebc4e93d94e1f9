"""Operators, one op per file: the node that describes the op, followed by the operator that runs it.

To add an op, add its file here, one method in api/ and one test file in tests/ops/. Code that several ops share is in
runtime/. This package is internal: it makes no compatibility promises.
"""
