"""Amounts that many modules share: how much is read, computed or held at a time.

Each is large enough to amortize the fixed cost of a step, and small enough to be held without counting it. A module
defines an amount of its own only if it has another reason for it.
"""

STEP_ELEMENTS = 1024
"""Elements per step. The fixed cost of a step is small compared to that of this many elements."""
AHEAD_ELEMENTS = 4096
"""Small elements that an op reads ahead, sorts or reorders at once; ``AHEAD_BYTES`` limits larger ones."""
AHEAD_BYTES = 1 << 18
"""Bytes of elements that an op reads ahead, sorts or reorders at once: they stay in the cache of a core. A single
element may be larger."""
STEP_BYTES = 1 << 20
"""Bytes of elements that are computed, converted or collected before the next step takes them."""
CACHE_BYTES = 4 << 20
"""Elements of fewer bytes in total stay in the processor's cache from one function to the next."""
LARGE_ELEMENT_BYTES = 8192
"""A larger element is expensive by itself, and a batch or column of such elements does not stay in the cache."""
BLOCK_BYTES = 1 << 18
"""Bytes per read or write of a file: tf.data's default for a read buffer."""
PIECE_BYTES = 1 << 20
"""The most that is read because of a declared length: memory grows with the actual size, so the length may be wrong."""
FEW_ELEMENTS = 8
"""Fewer elements are handled one by one in less time than together."""
FAR = 64
"""Skipping this many elements costs less than pulling them."""
SAMPLE_ELEMENTS = 64
"""Elements of a chunk whose sizes are measured: their mean counts for all of its elements."""
ENDLESS = 1 << 62
"""More elements, or bytes, than there can ever be; sums of two still fit in an int64."""
TEXT_MAX = 60
"""Characters of a value, query or function that a message or a line of a plan shows."""
REST = 50
"""What is repeated rests for at least this many times its own duration, so that it takes at most 2% of the time."""
PEEK_BYTES = 1 << 12
"""Bytes per read if few of them are likely to be used, such as those of one header: a page of memory."""
