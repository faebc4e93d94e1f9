"""Vectorized number parser: converts the text of many numbers to an array.

The characters of a number are loaded into up to three 64-bit words: the last 8 characters, the 8 before them and so on,
padded in front with the character 0. A decimal point is shifted out; its position gives the power of ten to divide by.
Then three multiplications per word convert 8 digits to their value, for all numbers of the column at once (Daniel
Lemire, "Quickly parsing eight digits"). Dividing an integer up to 2**53 by a power of ten up to 10**22 rounds once, so
the result is the float nearest to the text (William Clinger, "How to read floating point numbers accurately"). For
larger integers the remainder of the division corrects the rounding error (T. J. Dekker, "A floating-point technique for
extending the available precision").

Texts that are longer, have an exponent or are not numbers are marked as odd. ``parse_int`` and ``parse_float`` parse
them one by one with Python's ``int`` and ``float``. These two functions define the result for every text; the
vectorized path is only faster.
"""

from __future__ import annotations

import decimal
import re
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["PAD", "parse_float", "parse_int", "read_floats", "read_ints"]

Array: TypeAlias = npt.NDArray[Any]

_WORD = 8
_WORDS_MAX = 3
_TOP_MAX = 999  # of the third word, so that the value is less than 10**19 and fits into 64 bits
PAD = _WORD * _WORDS_MAX
"""Number of bytes that must precede the first field, so that its words are within the buffer."""

_BLANKS_MAX = 8  # blanks stripped at each end of a field by the vectorized path
_EXACT_MAX = 1 << 53  # all integers up to this are exact as float64

_U = np.uint64
_CHARACTER_0 = _U(0x3030303030303030)
_POINTS = _U(0x2E2E2E2E2E2E2E2E)
_ONES = _U(0x0101010101010101)
_TOPS = _U(0x8080808080808080)
_NIBBLES = _U(0xF0F0F0F0F0F0F0F0)
_SIXES = _U(0x0606060606060606)
# Masks that keep the last ``count`` characters of a word, those that belong to the number.
_KEPT = np.array([(1 << 64) - (1 << 8 * (_WORD - count)) for count in range(_WORD)] + [(1 << 64) - 1], _U)
_FILLED = _CHARACTER_0 & ~_KEPT
_TENS = 10.0 ** np.arange(23)  # all powers of ten that are exact as float64
_SPLITTER = 2.0**27 + 1  # Dekker's constant: splits the digits of a float64 into halves
_DOUBT = 2.0**-45  # upper bound of the relative error of a remainder

_INT = re.compile(rb"[+-]?[0-9]+")
_HEXADECIMAL = re.compile(rb"[+-]?0x[0-9a-f.]+(p[+-]?[0-9]+)?")
_NAN_WITH_PAYLOAD = re.compile(rb"[+-]?nan\([0-9a-z_]*\)")
_DIGITS_MAX = 19  # of an int64


def parse_int(text: bytes, dtype: np.dtype[Any]) -> int:
    """Return the integer in a text; blanks around it are allowed.

    Raises:
        ValueError: the text is not an integer, or the integer does not fit into ``dtype``.
    """
    stripped = text.strip()
    if _INT.fullmatch(stripped):
        digits = stripped.lstrip(b"+-").lstrip(b"0")
        if len(digits) <= _DIGITS_MAX:  # int() is slow for thousands of digits, and raises for more
            value = int(digits or b"0") * (-1 if stripped.startswith(b"-") else 1)
            limits = np.iinfo(dtype)
            if limits.min <= value <= limits.max:
                return value
    raise ValueError(text)


def parse_float(text: bytes, dtype: np.dtype[Any]) -> np.floating[Any]:
    """Return the float nearest to a text, as C's ``strtod`` does; blanks around it are allowed.

    Raises:
        ValueError: the text is not a number.
    """
    value = _parse_double(text)
    if dtype == np.float64:
        return np.float64(value)
    with np.errstate(over="ignore"):
        return np.float32(_toward(text, value))


def _parse_double(text: bytes) -> float:
    try:
        if b"_" not in text:
            return float(text)
    except ValueError:
        pass
    word = text.strip().lower()
    if _NAN_WITH_PAYLOAD.fullmatch(word):
        return float("nan")
    if not _HEXADECIMAL.fullmatch(word):
        raise ValueError(text)
    try:
        return float.fromhex(word.decode())
    except OverflowError:
        return float("-inf" if word.startswith(b"-") else "inf")


def _toward(text: bytes, value: float) -> float:
    """Return a float64 that rounds to the same float32 as the text does.

    Rounding twice gives a wrong result if the float64 is exactly between two float32s and the text is not.
    """
    try:
        exact = decimal.Decimal(text.decode().strip())
    except (decimal.InvalidOperation, UnicodeDecodeError):
        return value  # hexadecimal, or not a finite number
    if not exact.is_finite() or not np.isfinite(value):
        return value
    between = decimal.Decimal(value)
    if exact == between:
        return value
    return float(np.nextafter(value, np.inf if exact > between else -np.inf))


def read_ints(data: Array, starts: Array, ends: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Return the integers in many fields. No field may be empty.

    Args:
        data: uint8, with PAD bytes before the first field.
        starts: where the fields begin in ``data``.
        ends: where they end.
        dtype: int32 or int64.

    Returns:
        The values, and a mask of the odd ones, which ``parse_int`` must parse.
    """
    starts, ends = _without_blanks(data, starts, ends)
    negative, lengths = _signs(data, starts, ends)
    whole, odd = _digits(_words(data, ends, lengths))
    odd |= (lengths < 1) | (lengths > PAD) | (whole > _U(np.iinfo(np.int64).max))
    values = whole.astype(np.int64)
    np.negative(values, out=values, where=negative)
    if dtype != np.int64:
        limits = np.iinfo(dtype)
        odd |= (values < limits.min) | (values > limits.max)
    return values.astype(dtype, copy=False), odd


def read_floats(data: Array, starts: Array, ends: Array, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Return the float32 or float64 numbers in many fields, and a mask of those that ``parse_float`` must parse."""
    starts, ends = _without_blanks(data, starts, ends)
    negative, lengths = _signs(data, starts, ends)
    words, decimals, has_point = _without_points(_words(data, ends, lengths))
    whole, odd = _digits(words)
    odd |= (lengths - has_point < 1) | (lengths > PAD)
    tens = _TENS[np.minimum(decimals, len(_TENS) - 1)]
    odd |= decimals >= len(_TENS)
    values = whole.astype(np.float64)
    if len(words) > 1 and (whole > _U(_EXACT_MAX)).any():
        values, doubtful = _divided(whole, values, tens)
        odd |= doubtful
    else:
        values /= tens
    np.negative(values, out=values, where=negative)
    if dtype == np.float64:
        return values, odd
    return values.astype(np.float32), odd | is_between(values)


def _divided(whole: Array, rounded: Array, tens: Array) -> tuple[Array, Array]:
    """Return ``whole / tens``, rounded once, and a mask of uncertain results; ``rounded`` is ``whole`` as floats."""
    left = (whole - rounded.astype(np.uint64)).astype(np.int64).astype(np.float64)
    quotient = rounded / tens
    product = quotient * tens
    high, low = _halves(quotient)
    tens_high, tens_low = _halves(tens)
    error = ((high * tens_high - product) + high * tens_low + low * tens_high) + low * tens_low
    correction = ((rounded - product) - error + left) / tens
    result = quotient + correction * (1 + _DOUBT)
    return result, result != quotient + correction * (1 - _DOUBT)


def _halves(values: Array) -> tuple[Array, Array]:
    """Split each float into two floats of half as many digits, whose products are exact."""
    large = values * _SPLITTER
    high = large - (large - values)
    return high, values - high


def is_between(values: Array) -> Array:
    """Return which float64s may round to another float32 than the exact number does: see ``_toward``."""
    middle = (values.view(np.uint64) & _U(0x1FFFFFFF)) == _U(0x10000000)
    tiny = (np.abs(values) < np.finfo(np.float32).tiny) & (values != 0)
    between: Array = middle | tiny
    return between


def _without_blanks(data: Array, starts: Array, ends: Array) -> tuple[Array, Array]:
    """Strip blanks from both ends of the fields."""
    for _ in range(_BLANKS_MAX):
        blank = (data[starts] == 0x20) & (starts < ends)
        if not blank.any():
            break
        starts = starts + blank
    for _ in range(_BLANKS_MAX):
        blank = (data[ends - 1] == 0x20) & (starts < ends)
        if not blank.any():
            break
        ends = ends - blank
    return starts, ends


def _signs(data: Array, starts: Array, ends: Array) -> tuple[Array, Array]:
    """Return which numbers have a minus sign, and their lengths without it. A plus sign makes a number odd."""
    negative = (data[starts] == ord("-")) & (starts < ends)
    return negative, ends - starts - negative


def _words(data: Array, ends: Array, lengths: Array) -> list[Array]:
    """Return the last 8 characters of each number, the 8 before them if any number has that many, and so on."""
    # A view of 8 consecutive bytes from every position.
    everywhere = np.lib.stride_tricks.as_strided(data[:_WORD].view("<u8"), (len(data) - _WORD + 1,), (1,))
    longest = int(lengths.max()) if len(lengths) else 0
    words = []
    for before in range(0, max(min(longest, PAD), 1), _WORD):
        count = np.clip(lengths - before, 0, _WORD)
        words.append(everywhere[ends - before - _WORD] & _KEPT[count] | _FILLED[count])
    return words


def _digits(words: list[Array]) -> tuple[Array, Array]:
    """Return the integers whose digits the words hold, and which words hold other characters."""
    whole, odd = _value(words[0]), _not_digits(words[0])
    for number, word in enumerate(words[1:], 1):
        value = _value(word)
        odd |= _not_digits(word)
        if number == _WORDS_MAX - 1:
            odd |= value > _U(_TOP_MAX)
            value = np.minimum(value, _U(_TOP_MAX + 1))  # odd values must not overflow, either
        whole += value * _U(10 ** (_WORD * number))
    return whole, odd


def _without_points(words: list[Array]) -> tuple[list[Array], Array, Array]:
    """Remove the last decimal point from each number.

    Returns:
        The words, the number of characters after the point, and whether there was a point.
    """
    shifted = []
    decimals = np.zeros(len(words[0]), np.intp)
    has_point = np.zeros(len(words[0]), np.bool_)
    for number, word in enumerate(words):
        before = words[number + 1] >> _U(56) if number + 1 < len(words) else _U(ord("0"))
        without, behind, found = _without_point(word, before)
        if number:
            without = np.where(has_point, word << _U(8) | before, without)
            found &= ~has_point  # a second point is kept; it is not a digit, so the number becomes odd
        decimals += (behind + _WORD * number) * found
        has_point |= found
        shifted.append(without)
    return shifted, decimals, has_point


def _without_point(words: Array, before: Any) -> tuple[Array, Array, Array]:
    """Remove the first decimal point from a word of each number, and shift the characters before it into its place.

    Args:
        words: 8 characters each, the first in the lowest byte.
        before: the character that is shifted in at the front; one for all words, or one for each word.

    Returns:
        The words, the number of characters after the point if there was one, and whether there was one.
    """
    differing = words ^ _POINTS
    zero_bytes = (differing - _ONES) & ~differing & _TOPS  # only the lowest set bit is reliable
    point = (zero_bytes & (~zero_bytes + _U(1))) >> _U(7)  # the lowest bit of the point's byte
    in_front = point - _U(1)
    behind = ~((point << _U(8)) - _U(1))
    found = point != 0
    shifted = (words & behind) | (words & in_front) << _U(8) | before
    behind_count = _WORD - 1 - (np.bitwise_count(in_front) >> 3).astype(np.intp)
    return np.where(found, shifted, words), behind_count, found


def _not_digits(words: Array) -> Array:
    """Return which words hold anything but 8 digits."""
    wrong = (words & _NIBBLES) ^ _CHARACTER_0
    wrong |= ((words + _SIXES) & _NIBBLES) ^ _CHARACTER_0
    odd: Array = wrong != 0
    return odd


def _value(words: Array) -> Array:
    """Return the value of 8 digits, the first of them in the lowest byte."""
    pairs = (words & _U(0x0F0F0F0F0F0F0F0F)) * _U(10 * 2**8 + 1) >> _U(8)
    fours = (pairs & _U(0x00FF00FF00FF00FF)) * _U(100 * 2**16 + 1) >> _U(16)
    return (fours & _U(0x0000FFFF0000FFFF)) * _U(10_000 * 2**32 + 1) >> _U(32)
