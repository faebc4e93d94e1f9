"""Storage of elements in files: written and read by ``save``, ``load``, ``snapshot`` and ``cache(filename)``.

A directory contains one dataset. Its format, version 1::

    <directory>/
      metadata.json            the description; renamed into place last, so a directory that has it is complete
      <run>/00000000.tfrecord  the shards, each a TFRecord file, plain or compressed; <run> is 16 hexadecimal digits
      <run>.<digits>.lock      exists while a process writes or removes that run; locked, so that a dead writer can be
                               detected. Only runs with a lock file are removed; other directories may be the user's.
                               The digits follow from the run, so that a file of the user is not taken for a lock file

``metadata.json`` is an object with ``format`` ("dataset elements"), ``version``, ``run``, ``structure`` (a skeleton,
see plan/skeleton.py) and ``components`` (the specs), both null if there was no element to derive them from,
``compression`` ("", "GZIP", "ZLIB", "ZSTD" or "SNAPPY"), ``elements``, ``shards`` (in the order of their numbers: for
each the number of its ``file``, the numbers of ``records`` and ``elements``, and as ``crc`` the CRC-32C of all its
records), ``about`` (plain data of the writer) and ``digest`` (of everything else).

A record contains up to 4096 consecutive elements of one shard, about 1 MiB, as columns: a length (4 bytes,
little-endian), that many bytes of JSON, then arrays, each aligned to 16 bytes. The JSON states the number of elements,
the arrays of each component, and as ``place`` the run, the number of the file and the number of the record in the file,
so that exchanged shards are detected; codec.py has the details. So a column that is read is a view of the record's
bytes, and a column that is written is copied once.

The input is not trusted: every number is compared with the available bytes before memory is allocated, arrays of
objects contain only ``bytes``, and file names are derived from numbers. Nothing that is read is executed. Damage raises
``DataLossError`` with file, offset and record.

codec.py and decoding.py convert columns to records and back; metadata.py and write_session.py handle the directory.
dataset_writer.py and shard_dataset.py are the writer and the reader of all ops. stored_dataset.py is the store of
``cache(filename)`` and ``snapshot``.
"""
