"""Reader of WebDataset shards: tar files whose members are grouped to samples.

Where to read next:

    source.py    the nodes of ``TarDataset``, which read many files, in order or by number
    reader.py    the samples of one file, with a position that can be saved and restored
    members.py   the members of a tar stream: headers, names and sizes
    index.py     where the samples of a file are, and random access to them
"""
