"""Elements in files: what ``save``, ``load``, ``snapshot`` and ``cache(filename)`` write and read.

A directory holds one dataset. Its format, version 1::

    <directory>/
      metadata.json            what is there; written last, by renaming, so that what has it is complete
      <run>/00000000.tfrecord  the shards, each a TFRecord file, plain or GZIP; <run> is 16 hexadecimal digits
      <run>.lock               there while a process writes or removes that run; locked, so that a dead writer can be
                               told. Only runs that have one are ever removed: it is the list of what is no user's

``metadata.json`` is an object with ``format`` ("dataset elements"), ``version``, ``run``, ``structure`` (a skeleton,
see plan/skeleton.py) and ``components`` (the specs), both null where no element told them, ``compression`` ("",
"GZIP" or "ZLIB"), ``elements``, ``shards`` (in the order of their numbers: the number of each one's ``file``, how many
``records`` and ``elements``, and as ``crc`` the CRC-32C of all its records), ``about`` (plain data of whoever wrote it)
and ``digest`` (over all the rest).

A record holds up to 4096 consecutive elements of one shard, of about 1 MiB, as columns: a length (4 bytes,
little-endian), that many bytes of JSON, then arrays, each beginning at a multiple of 16 bytes. The JSON says how many
elements there are, which arrays make up each component, and as ``place`` the run, the number of the file and the
number of the record in the file, so that a shard that was exchanged is noticed; codec.py tells how. So a column that is
read is a view of the record's bytes, and a column that is written is copied once.

Nothing that is read is believed or run: every number is held against the bytes that are there before anything is
allocated, arrays of objects are always ``bytes``, names of files are made of numbers. Damage raises ``DataLossError``
with file, offset and record.

codec.py and decoding.py turn columns into records and back; metadata.py, locks.py and write_session.py know the
directory; the files with ``dataset`` in their names are the ops.
"""
