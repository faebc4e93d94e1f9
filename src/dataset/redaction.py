"""Redaction: removes passwords, tokens and signatures from URLs in messages, plans and saved states.

Everything that shows a path or writes it to a file passes it through ``redacted``. Every part that could be a secret is
hidden: the user information before the host, the fragment, and the values of the query except for a few keys that only
select a file. Local paths are unchanged.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any, NoReturn
from urllib.parse import unquote, unquote_plus

_HIDDEN = "***"

_URL = re.compile(r"""[A-Za-z][\w.+-]+://[^\s'"<>]*""")
_PARTS = re.compile(r"(?s)(.*?://)(?:([^/?#]*)@)?([^?#]*)(\?[^#]*)?(#.*)?")
_HARMLESS = {"alt", "download", "file", "filename", "format", "generation", "id", "index", "name", "page", "part"}
_HARMLESS |= {"path", "version", "versionid"}
_PAIR = re.compile(
    r"(?i)((?:x-(?:amz|goog|ms)-[\w-]+|[\w-]*(?:token|signature|password|passwd|secret|credential|api_?key)|sig|auth)=)"
    r"""([^&#\s'"<>,;)\]}]+)"""
)
_HEADER = re.compile(r"(?i)((?:proxy-)?authorization\W+(?:basic|bearer|digest|aws4-hmac-sha256)?\s*)[^\s'\"]+")
_LINK = re.compile(r"::(?=[A-Za-z][\w.+-]*(?:::|://))")  # separates the URLs of chained file systems
_SECRET_MIN = 3  # characters; shorter values would be replaced inside unrelated words


def redacted(path: str) -> str:
    """Return a path with every possible secret replaced by ``***``; a local path is returned unchanged.

    >>> redacted("https://user:password@host/a.csv?id=7&X-Amz-Signature=0c1d#part")
    'https://***@host/a.csv?id=7&X-Amz-Signature=***#***'
    >>> redacted("zip://a.csv::https://host/a.zip?sig=1"), redacted("s3://bucket/key"), redacted("/data/a?b=c#d")
    ('zip://a.csv::https://host/a.zip?sig=***', 's3://bucket/key', '/data/a?b=c#d')
    """
    return "::".join(map(_redacted_url, _LINK.split(path))) if "://" in path else path


def redacted_text(text: str) -> str:
    """Return a message with its URLs, and everything that looks like the value of a secret parameter, redacted.

    >>> redacted_text("403 Forbidden, url='https://host/a?sig=0c1d'; retry /a?access_token=12")
    "403 Forbidden, url='https://host/a?sig=***'; retry /a?access_token=***"
    """
    if "://" in text:
        text = _URL.sub(lambda found: redacted(found[0]), text)
    if "uthorization" in text:
        text = _HEADER.sub(rf"\1{_HIDDEN}", text)
    return _PAIR.sub(rf"\1{_HIDDEN}", text) if "=" in text else text


def _redacted_url(url: str) -> str:
    found = _PARTS.fullmatch(url)
    if found is None:  # a scheme or a local path in a chain
        return url
    head, user, place, query, fragment = found.groups()
    is_web = _is_web(head)
    shown = head + (f"{_HIDDEN}@" if user is not None else "") + place
    if query is not None:
        shown += "?" + re.sub(r"[^&;]+", lambda part: _redacted_parameter(part[0], is_web=is_web), query[1:])
    if fragment is not None:
        shown += f"#{_HIDDEN}" if _hides_fragment(head, fragment) else fragment
    return shown


def _is_web(head: str) -> bool:
    return head.lower() in {"http://", "https://"}


def _hides_fragment(head: str, fragment: str) -> bool:
    """Return whether the fragment may be a secret. In a bucket, ``#`` may be part of an object's name."""
    return _is_web(head) or "=" in fragment


def _redacted_parameter(parameter: str, *, is_web: bool) -> str:
    key, equals, value = parameter.partition("=")
    if not equals:  # outside the web it may be a wildcard or part of a name
        return _HIDDEN if is_web else parameter
    return parameter if key.lower() in _HARMLESS or not value else f"{key}={_HIDDEN}"


def secrets_of(path: str) -> set[str]:
    """Return the parts of a path that ``redacted`` hides: as written, percent-decoded, and base64-encoded for headers.

    >>> sorted(secrets_of("https://user:pass@host/a?sig=ab%20cd"))
    ['ab cd', 'ab%20cd', 'dXNlcjpwYXNz', 'pass', 'user', 'user:pass']
    """
    found: set[str] = set()
    for url in _LINK.split(path):
        parts = _PARTS.fullmatch(url)
        if parts is None:
            continue
        head, user, _, query, fragment = parts.groups()
        pieces = [user or "", *(user or "").split(":", 1)]
        if fragment is not None and _hides_fragment(head, fragment):
            pieces.append(fragment[1:])
        for parameter in re.split("[&;]", (query or "?")[1:]):
            if _redacted_parameter(parameter, is_web=_is_web(head)) != parameter:
                key, equals, value = parameter.partition("=")
                pieces.append(value if equals else key)
        found |= {form for piece in pieces for form in (piece, unquote(piece), unquote_plus(piece))}
        if user:  # the form in an Authorization header
            found |= {base64.b64encode(form.encode()).decode() for form in (user, unquote(user))}
    return {secret for secret in found if len(secret) >= _SECRET_MIN}


def hidden_errors(error: BaseException | None, secrets: set[str]) -> BaseException | None:
    """Return the exception if its text, notes and causes hold none of ``secrets``, otherwise a redacted OSError."""
    if error is None:
        return None
    if any(_shows(one, secrets) for one in _chain(error)):
        stand_in = OSError(f"{type(error).__name__}: {_without(str(error), secrets)}")
        for note in getattr(error, "__notes__", ()):
            stand_in.add_note(_without(note, secrets))
        stand_in.__cause__ = hidden_errors(error.__cause__, secrets)
        return stand_in
    return error


def redacted_error(error: BaseException, path: str) -> None:
    """Remove the secrets of ``path`` from an exception that is about to be raised, in place.

    Its arguments, fields and notes are rewritten. A cause or context that shows a secret is replaced by a redacted
    OSError.
    """
    secrets = secrets_of(path)
    if not secrets or not any(_shows(one, secrets) for one in _chain(error)):
        return
    error.args = tuple(_without(part, secrets) if isinstance(part, str) else part for part in error.args)
    for key, value in vars(error).items():
        if isinstance(value, str):
            setattr(error, key, _without(value, secrets))
    if isinstance(error, OSError):
        for key in ("filename", "filename2", "strerror"):
            if isinstance(value := getattr(error, key), str):
                setattr(error, key, _without(value, secrets))
    notes = getattr(error, "__notes__", None)
    if notes:
        notes[:] = [_without(note, secrets) for note in notes]
    is_suppressed = error.__suppress_context__
    error.__cause__ = hidden_errors(error.__cause__, secrets)
    error.__suppress_context__ = is_suppressed
    error.__context__ = None if error.__cause__ is not None else hidden_errors(error.__context__, secrets)


def raise_redacted(error: Exception, cause: BaseException, path: str) -> NoReturn:
    """Raise an exception from a cause, or from a redacted OSError if the cause shows a secret of ``path``."""
    shown = hidden_errors(cause, secrets_of(path))
    try:
        raise error from shown
    finally:
        if shown is not cause:
            error.__context__ = None
        del error, cause, shown  # see runtime/contract.py on exceptions that are kept


def text_without_secrets(text: str, path: str) -> str:
    """Return a message without the secrets of ``path`` and everything that looks like a secret."""
    return _without(text, secrets_of(path))


def _without(text: str, secrets: set[str]) -> str:
    text = redacted_text(text)
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, _HIDDEN)
    return text


def _shows(error: BaseException, secrets: set[str]) -> bool:
    texts = [_text(error), *map(str, getattr(error, "__notes__", ())), *map(repr, vars(error).values())]
    return any(secret in text for secret in secrets for text in texts)


def _text(error: BaseException) -> str:
    try:
        return f"{error}\n{error!r}"
    except Exception:  # noqa: BLE001  # an exception of another library whose str() fails
        return type(error).__name__


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the exception and, transitively, its causes and contexts."""
    seen: set[int] = set()
    waiting: list[Any] = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            yield one
            waiting += [one.__cause__, one.__context__]
