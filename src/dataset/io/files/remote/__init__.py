"""Remote files: everything that fsspec can access by a path with a scheme, such as ``s3://``.

Other packages use this one only through files/opening.py, files/atomic.py and files/list_files.py, which decide by the
path.

    paths.py          which paths are remote, and their file systems; the only file that imports fsspec
    reading.py        a remote file as an open file: position, read-ahead, retries
    cached_object.py  the blocks of a file that are kept on the disk, and fetched once on this machine
    cache.py          the folder of such blocks
    backoff.py        when a host may be asked again, for all readers
    objects.py        fetching a range of bytes from any file system of fsspec
    http.py, s3.py    the same for HTTP and S3; these detect for each range whether the file has changed
    retrying.py       how often and when a failed request is retried
    failures.py       which failures may be transient, and the errors that users see
    cancellation.py   cancelling threads that wait for a server
    writing.py        files that appear when they are complete
    listing.py        the names that match a pattern
"""

from dataset.lazy_imports import lazy_imports

with lazy_imports():  # they import asyncio
    from dataset.io.files.remote.listing import matching_remote_files
    from dataset.io.files.remote.reading import open_remote
    from dataset.io.files.remote.stamp import remote_stamp
    from dataset.io.files.remote.writing import RemoteTarget

__all__ = ["RemoteTarget", "matching_remote_files", "open_remote", "remote_stamp"]
