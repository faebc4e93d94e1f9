"""The iterator, the pass of a consumer, random access, and prefetching to a device."""
