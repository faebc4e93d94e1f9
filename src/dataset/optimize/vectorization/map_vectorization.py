"""Run simple arithmetic functions on whole columns instead of element by element.

    before:  map(lambda x: x / 255)            a call for each element
    after:   map(lambda x: x / 255), columns   the same division for each chunk, with an array as x

Legal if elementwise_proof.py proves, from the function's bytecode and the values it reads, that it has no side effects
and computes each element independently. The function may also parse Examples and decode raw bytes first, with
parse_single_example, decode_raw and np.frombuffer. Conditions on the elements are checked at run time
(runtime/functions/columnwise.py): a chunk is processed in columns if the function computes only with numbers or small
arrays of numbers with suitable ranks. The first results are compared with those of single elements (values, dtypes and
shapes); after any exception or difference, the operator returns to single elements.
"""

from __future__ import annotations

import dataclasses
import math

from dataset.ops.elementwise import Elementwise
from dataset.optimize.vectorization.elementwise_proof import prove_elementwise
from dataset.plan.node import Miss, Node, spec_is_static
from dataset.plan.spec import TensorSpec
from dataset.plan.structure import is_tuple, structure_of
from dataset.runtime.functions.columnwise import ELEMENT_BYTES_MAX, NUMBERS, ElementPart, ElementwiseProof


def vectorize_map(node: Node) -> Node | Miss | None:
    """Return the map or filter, marked to run on columns."""
    if not isinstance(node, Elementwise) or node.columnwise is not None or node.takes_columns:
        return None
    proof = prove_elementwise(node.called)
    if not isinstance(proof, ElementwiseProof):
        return None if proof is None else Miss(proof)
    reason = None if proof.derived else _misfit(proof, node.source)
    return dataclasses.replace(node, columnwise=proof) if reason is None else Miss(reason)


def _misfit(proof: ElementwiseProof, source: Node) -> str | None:
    """Return why the source's elements can never run in columns, or None if that is unknown before running."""
    if not spec_is_static(source):
        return None
    spec = source.element_spec
    structure = structure_of(spec)
    if not proof.takes(structure):
        return f"the elements, {spec!r}, are not arguments with which it is known to be safe"
    specs = {path: ElementPart(path).of(spec if is_tuple(structure) else (spec,)) for path in proof.numbers}
    if not all(isinstance(part, TensorSpec) and part.dtype in NUMBERS for part in specs.values()):
        return f"it computes with more than numbers and arrays of them; the elements are {spec!r}"
    if any(_known_bytes(part) > ELEMENT_BYTES_MAX for part in specs.values()):
        return f"its arrays have more than {ELEMENT_BYTES_MAX} bytes, and are faster one by one"
    for paths, rank in proof.together:
        ranks = {len(specs[path].shape) for path in paths if specs[path].shape is not None}
        if len(ranks) > 1 or any(known < rank for known in ranks):
            return "it combines arrays of different ranks"
    return None


def _known_bytes(spec: TensorSpec) -> int:
    """Return the minimum size of such a component in bytes."""
    return spec.dtype.itemsize * math.prod(size or 0 for size in spec.shape or ())
