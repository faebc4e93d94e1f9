"""Files that are not on this machine's disks: whatever fsspec reaches by a path with a scheme, such as ``s3://``.

Nothing outside asks this room for anything but through opening.py, atomic.py and list_files.py beside it, which decide
by the path.

    paths.py          which paths are remote, and the file system of one; the only file that imports fsspec
    reading.py        a remote file as an open file: its position, what is read ahead, what is tried again
    objects.py        fetching a range of bytes, from any file system of fsspec
    http.py, s3.py    the same with all that these two tell: each range is known to be of the same version
    retrying.py       how often and when a failed request is sent again
    failures.py       which failures may pass, and what users see of those that don't
    cancellation.py   how a thread that waits for a server learns that nobody needs its answer any more
    writing.py        files that appear when they are whole
    listing.py        the names that match a pattern
"""
