"""Failures of file systems: which ones may be transient, and the errors that users see.

Each file system of fsspec raises the errors of its underlying library. To avoid importing these libraries, errors are
classified by common properties: system error numbers, HTTP status codes, and the names of a few classes.
"""

from __future__ import annotations

import errno
import importlib
import os
import re
from collections.abc import Iterator

from dataset.redaction import redacted, text_without_secrets
from dataset.world import socket, time

PASSING_STATUS = {408, 425, 429, 500, 502, 503, 504, *range(505, 600)}
"""HTTP: the server is busy or failing. 501 is not included: it means that the server never supports the request."""

PASSING_ERRNO = {
    *(errno.EAGAIN, errno.EBUSY, errno.EPIPE, errno.ETIMEDOUT, errno.ECONNRESET, errno.ECONNABORTED),
    *(errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.ENETRESET, errno.ENOTCONN),
    getattr(errno, "EREMOTEIO", errno.ECONNRESET),  # s3fs: an internal error of the server
    getattr(errno, "EHOSTDOWN", errno.ECONNRESET),
}

PASSING_NAMES = {
    *("ClientConnectionError", "ClientPayloadError"),  # aiohttp
    *("HTTPClientError", "IncompleteReadError", "ResponseStreamingError"),  # botocore
    *("RequestException", "ProtocolError"),  # requests, urllib3
    *("IncompleteRead", "RemoteDisconnected"),  # http.client
    *("ServiceRequestError", "ServiceResponseError"),  # azure
}

PERMANENT_NAMES = {
    *("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "ProfileNotFound"),  # botocore
    *("ClientConnectorCertificateError", "InvalidURL", "TooManyRedirects", "InvalidSchema", "SSLCertVerificationError"),
}

TOO_MANY = 429
UNAVAILABLE = 503
DENIED = {401, 403, 407}
MISSING = {404, 410}


def may_pass(error: BaseException) -> bool:
    """Return whether the same request may succeed later.

    >>> may_pass(ConnectionResetError()), may_pass(FileNotFoundError())
    (True, False)
    """
    chain = list(_causes(error))
    if any(_names(one) & PERMANENT_NAMES for one in chain):
        return False
    # The error raised last is the most specific: aiohttp's "connection lost" is raised from a parser's "status 400".
    return next((verdict for one in chain if (verdict := _verdict(one)) is not None), False)


def _verdict(error: BaseException) -> bool | None:
    """Return whether this error may be transient; None if it doesn't tell, so that its cause decides."""
    if isinstance(error, socket.gaierror):  # a failed name lookup: an OSError with its own error numbers
        return error.errno == socket.EAI_AGAIN
    if isinstance(error, TimeoutError | ConnectionError | EOFError):
        return True
    if isinstance(error, OSError) and error.errno in PASSING_ERRNO:
        return True
    if _names(error) & PASSING_NAMES:  # a failed connection has its reason in an attribute
        reason = getattr(error, "os_error", None)
        return not isinstance(reason, socket.gaierror) or reason.errno == socket.EAI_AGAIN
    status = _own_status(error)
    return None if status is None else status in PASSING_STATUS


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status code of an error, or None."""
    return next((status for one in _causes(error) if (status := _own_status(one)) is not None), None)


def _own_status(error: BaseException) -> int | None:
    response = getattr(error, "response", None)
    if isinstance(response, dict):  # botocore's
        found = iter([response.get("ResponseMetadata", {}).get("HTTPStatusCode")])
    else:  # read lazily: aiohttp has a status, and warns if its code is read
        names = ("status", "status_code", "code")
        found = (getattr(holder, name, None) for holder in (error, response) for name in names)
    return next((value for value in found if isinstance(value, int) and 400 <= value < 600), None)


def retry_after(error: BaseException) -> float | None:
    """Return how many seconds the server wants clients to wait (Retry-After); None if it does not say."""
    for one in _causes(error):
        response = getattr(one, "response", None)
        found = response.get("ResponseMetadata", {}) if isinstance(response, dict) else {}  # botocore's
        headers = found.get("HTTPHeaders") or getattr(one, "headers", None) or getattr(response, "headers", None) or {}
        words = next((value for name, value in headers.items() if name.lower() == "retry-after"), None)
        if words is not None:
            return _seconds(str(words).strip())
    return None


def _seconds(words: str) -> float | None:
    if re.fullmatch("[0-9]{1,9}", words):
        return float(words)
    try:
        date = importlib.import_module("email.utils").parsedate_to_datetime(words)
        return max(0.0, float(date.timestamp() - time.time()))
    except (ValueError, OverflowError):
        return None


def explained(error: Exception, path: str) -> OSError:
    """Return the error that users see: an OSError with the redacted path, of the type that a local file would raise.

    >>> explained(PermissionError("Forbidden"), "s3://bucket/a")
    PermissionError(13, 'access denied (Forbidden)')
    """
    status, shown = status_of(error), redacted(path)
    words = text_without_secrets(str(error) or type(error).__name__, path)
    if isinstance(error, FileNotFoundError) or status in MISSING:
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), shown)
    if isinstance(error, PermissionError) or status in DENIED:
        return PermissionError(errno.EACCES, f"access denied ({words})", shown)
    if isinstance(error, OSError) and error.errno is not None and not isinstance(error, socket.gaierror):
        return OSError(error.errno, text_without_secrets(error.strerror or "", path) or words, shown)
    return OSError(errno.EIO, f"{type(error).__name__}: {words}", shown)


def _names(error: BaseException) -> set[str]:
    return {cls.__name__ for cls in type(error).__mro__}


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Iterate over the error and its explicit causes."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__
