"""Amounts that many modules share: how much is read, computed or held at a time.

Each is large enough to amortize the fixed cost of a step, and small enough that its memory needs no account. A module
defines an amount of its own only if it has another reason for it.
"""

# Elements

STEP_ELEMENTS = 1024
"""Elements per step. The fixed cost of a step is small compared to that of this many elements."""

AHEAD_ELEMENTS = 8192
"""Small elements that an op reads ahead, sorts or reorders at once; ``AHEAD_BYTES`` limits larger ones."""

AHEAD_BYTES = 1 << 18
"""Bytes of elements that an op reads ahead, sorts or reorders at once: they stay in the cache of a core. A single
element may be larger."""

AHEAD_FIRST = 128
"""Elements of unknown size that an op reads ahead if this is unobservable: the delay and the memory are small."""

EACH_ELEMENTS = 64
"""Elements of each of many datasets that an op reads ahead or reorders at once: they amortize the cost per dataset."""

EACH_BYTES = 1 << 14
"""The same in bytes: copying more than requested does not pay off for larger elements."""

STEP_BYTES = 1 << 20
"""Bytes of elements that are computed, converted or collected before the next step takes them."""

CACHE_BYTES = 4 << 20
"""Elements of fewer bytes in total stay in the processor's cache from one function to the next."""

HELD_BYTES = 1 << 26
"""Bytes of elements that may wait for earlier ones or for more, or that are combined in memory."""

LARGE_ELEMENT_BYTES = 8192
"""A larger element is expensive by itself, and a batch or column of such elements does not stay in the cache."""

FEW_ELEMENTS = 8
"""Fewer elements are handled one by one in less time than together."""

FAR = 64
"""Skipping this many elements costs less than pulling them."""

SAMPLE_ELEMENTS = 64
"""Elements of a chunk whose sizes are measured: their mean counts for all of its elements."""

FAILURES_MAX = 100_000
"""How many consecutive failures indicate a broken, possibly endless pipeline: an error is better than a hang. Reaching
this takes a second or less, and damaged data never has this many consecutive failures."""

ENDLESS = 1 << 62
"""More elements, or bytes, than there can ever be. The sum with an actual number of elements fits in an int64."""

# Files and memory

BLOCK_BYTES = 1 << 18
"""Bytes per read or write of a file: tf.data's default for a read buffer."""

PEEK_BYTES = 1 << 12
"""Bytes per read if few of them are likely to be used, such as those of one header: a page of memory."""

PIECE_BYTES = 1 << 20
"""Bytes per read of content with a declared length. Memory grows with the actual size, so the length is not trusted."""

OPEN_FILES_MAX = 64
"""How many of thousands of files stay open: a process may open about a thousand."""

ALIGNMENT = 64
"""Bytes: a cache line, which suits vector instructions. XLA and TensorFlow require it of memory that they share."""

# Texts and time

TEXT_MAX = 60
"""Characters of a value, query or function that a message or a line of a plan shows."""

REST_FACTOR = 50
"""What is repeated rests for at least this many times its own duration, so that it takes at most 2% of the time."""
