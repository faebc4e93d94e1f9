/* CSV: splits rows into fields, and converts the fields to columns of numbers and of positions of texts.

   io/csv/row_parser.py defines the grammar of rows and numbers. The kernel stops at a row that is malformed or
   incomplete, or has a field that it can't convert: an empty one without a default value, or a number in other than the
   decimal notation. Python then reads this row. */

#include "native.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#define ONES UINT64_C(0x0101010101010101)
#define DIGITS_MAX 19   /* the integers of this many digits fit in 64 bits */
#define POWER_MAX 22    /* the powers of ten up to this one are exact as doubles */
#define EXACT_BITS 53   /* the integers of this many bits are exact as doubles */

enum { TEXT, INT32, INT64, FLOAT32, FLOAT64 };         /* kinds of columns */
enum { DOUBLED = 1, ENDS_IN_ZERO = 2, MISSING = 4 };   /* what texts of a column have: "", \0 at the end, length -1 */

typedef struct { int64_t field, kind, has_default; uint64_t initial; } column;   /* the bits of the default number */
typedef struct { int64_t longest, flags; } summary;                              /* of the texts of a column */
typedef struct { int64_t begin, length; } place;   /* of a text; numbers are stored in the first bytes instead */

/* The layout of the rows, and where to store what is found; rows.py fills it as an array. */
typedef struct {
    int64_t delimiter, quotes, is_direct;   /* whether the delimiter ends any number */
    size_t na_size;
    int64_t count, fields_min, fields_max, rows_max;
    const uint8_t *na_value;
    const column *columns;
    int64_t *starts;      /* of rows_max + 1 rows */
    place *places;        /* of rows_max rows for each column */
    summary *summaries;   /* of each column */
} csv_layout;

static const double POWERS[POWER_MAX + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                             1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
static const uint64_t WHOLE_POWERS[9] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

INLINE int has(span text, uint8_t octet) {
    return text.at < text.end && *text.at == octet;
}

/* Returns a word whose lowest set bit is in the first byte of `word` that equals `octet`; 0 if there is none. */
INLINE uint64_t matches(uint64_t word, uint8_t octet) {
    word ^= ONES * octet;
    return (word - ONES) & ~word & TOP_BITS;
}

/* Returns the first `size` bytes of 8, or fewer; the others are 0. */
INLINE uint64_t load_some(const uint8_t *at, int64_t size) {
    uint64_t word = 0;
    if (size >= 8)
        return load64(at);
    memcpy(&word, at, (size_t)size);
    return word;
}

/* Appends the digits at text.at to the number `value`, modulo 2^64. Returns where they end. The value of 8 digits takes
   three multiplications (Lemire, "Quickly parsing eight digits"). */
INLINE const uint8_t *read_digits(span text, uint64_t *value) {
    while (text.at < text.end) {
        uint64_t word = load_some(text.at, text.end - text.at) ^ ONES * '0';
        uint64_t others = (word | (word + ONES * 0x76)) & TOP_BITS;   /* exact up to the first byte above 9 */
        int count = others ? __builtin_ctzll(others) / 8 : 8;
        if (!count)
            break;
        word <<= 64 - 8 * count;
        word = (word * 10 + (word >> 8)) & UINT64_C(0x00ff00ff00ff00ff);
        word = (word * 100 + (word >> 16)) & UINT64_C(0x0000ffff0000ffff);
        *value = *value * WHOLE_POWERS[count] + (uint32_t)(word * 10000 + (word >> 32));
        text.at += count;
        if (count < 8)
            break;
    }
    return text.at;
}

/* Computes the double nearest to whole * 10^power. Returns 0 if the quick ways can't tell which one it is.

   A product or quotient of exact numbers is rounded once (Clinger, "How to read floating point numbers accurately").
   For more bits, the remainder of the division corrects the quotient (Dekker, "A floating-point technique for extending
   the available precision"). The result is in doubt unless it is the same for all remainders within the error. */
INLINE int nearest(uint64_t whole, int64_t power, double *value) {
    double rounded = (double)whole;
    if (FLT_EVAL_METHOD || power < -POWER_MAX || power > POWER_MAX || (power > 0 && whole >> EXACT_BITS))
        return 0;
    *value = power < 0 ? rounded / POWERS[-power] : rounded * POWERS[power];
    if (power >= 0 || !(whole >> EXACT_BITS))
        return 1;
    double quotient = *value, ten = POWERS[-power], product = quotient * ten;
    double left = (double)(int64_t)(whole - (uint64_t)rounded);
    double large = quotient * 134217729.0, ten_large = ten * 134217729.0;   /* 2^27 + 1: splits a double into halves */
    double high = large - (large - quotient), ten_high = ten_large - (ten_large - ten);
    double low = quotient - high, ten_low = ten - ten_high;
    double error = ((high * ten_high - product) + high * ten_low + low * ten_high) + low * ten_low;
    double correction = ((rounded - product) - error + left) / ten;
    *value = quotient + correction * (1 + 0x1p-45);
    return *value == quotient + correction * (1 - 0x1p-45);
}

/* Returns whether the float32 nearest to a number may be another one than that nearest to its nearest double. */
INLINE int is_in_doubt(double value) {
    uint64_t bits = load64((const uint8_t *)&value);
    return (bits & 0x1fffffff) == 0x10000000 || value >= FLT_MAX || (value < FLT_MIN && value != 0);
}

/* Reads a decimal number with the C library. Returns 0 if it is long, or the locale has another decimal point. */
static int read_slowly(span text, int64_t kind, double *value) {
    char copy[64], *stop;
    size_t size = (size_t)(text.end - text.at);
    if (size >= sizeof copy)
        return 0;
    memcpy(copy, text.at, size);
    copy[size] = 0;
    *value = kind == FLOAT32 ? strtof(copy, &stop) : strtod(copy, &stop);
    return stop == copy + size;
}

/* Reads the rest of a float without its sign, which begins at `digits`: text.at follows the digits that give `whole`.
   Returns where the float ends, or NULL. */
INLINE const uint8_t *read_float(span text, const uint8_t *digits, uint64_t whole, int64_t kind, double *value) {
    int64_t count = text.at - digits, power = 0;
    if (has(text, '.')) {
        const uint8_t *point = ++text.at;
        text.at = read_digits(text, &whole);
        power = point - text.at;
        count -= power;
    }
    if (!count) {
        uint64_t word = text.end - digits < 3 ? 0 : (digits[0] << 16 | digits[1] << 8 | digits[2]) | 0x202020;
        *value = word == 0x6e616e ? NAN : INFINITY;
        return word == 0x6e616e || word == 0x696e66 ? digits + 3 : NULL;   /* nan or inf */
    }
    if (has(text, 'e') || has(text, 'E')) {
        uint64_t exponent = 0;
        text.at++;
        int is_negative = has(text, '-');
        text.at += is_negative || has(text, '+');
        const uint8_t *begin = text.at;
        text.at = read_digits(text, &exponent);
        if (text.at == begin)
            return NULL;
        count += text.at - begin > 4 ? DIGITS_MAX : 0;
        power += is_negative ? -(int64_t)(exponent & 0xffff) : (int64_t)(exponent & 0xffff);
    }
    if (count > DIGITS_MAX || !nearest(whole, power, value) || (kind == FLOAT32 && is_in_doubt(*value)))
        return read_slowly((span){digits, text.at}, kind, value) ? text.at : NULL;
    return text.at;
}

/* Reads a number; blanks around it are allowed. Returns where it ends, or NULL if there is none. */
INLINE const uint8_t *read_number(span text, int64_t kind, void *target) {
    while (has(text, ' '))
        text.at++;
    int is_negative = has(text, '-');
    text.at += is_negative | has(text, '+');
    const uint8_t *digits = text.at;
    uint64_t whole = 0;
    text.at = read_digits(text, &whole);
    if (kind >= FLOAT32) {
        double value;
        if (!(text.at = read_float(text, digits, whole, kind, &value)))
            return NULL;
        value = copysign(value, 1 - 2 * is_negative);
        float narrow = kind == FLOAT32 ? (float)value : 0;
        kind == FLOAT32 ? memcpy(target, &narrow, sizeof narrow) : memcpy(target, &value, sizeof value);
    } else {
        uint64_t limit = kind == INT32 ? INT32_MAX : INT64_MAX;
        if (text.at == digits || text.at - digits > DIGITS_MAX || whole > limit + (uint64_t)is_negative)
            return NULL;
        whole = (whole ^ (0 - (uint64_t)is_negative)) + (uint64_t)is_negative;
        memcpy(target, &whole, kind == INT32 ? 4 : 8);
    }
    while (has(text, ' '))
        text.at++;
    return text.at;
}

INLINE int ends_field(const csv_layout *layout, span text) {
    return has(text, (uint8_t)layout->delimiter) || has(text, '\n') || has(text, '\r');
}

/* Finds the field at the beginning of `rest`. Returns where the delimiter or line end after it is; NULL if the field is
   incomplete or malformed. */
INLINE const uint8_t *find_field(const csv_layout *layout, span rest, span *field, int64_t *flags) {
    uint8_t delimiter = (uint8_t)layout->delimiter, quote = layout->quotes ? '"' : delimiter;
    field->at = rest.at;
    if (layout->quotes && has(rest, '"')) {
        field->at = ++rest.at;
        for (;; rest.at += 2) {
            rest.at = memchr(rest.at, '"', (size_t)(rest.end - rest.at));
            if (!rest.at || rest.end - rest.at < 2)
                return NULL;
            if (rest.at[1] != '"')
                break;
            *flags |= DOUBLED;
        }
        field->end = rest.at++;
        return ends_field(layout, rest) ? rest.at : NULL;
    }
    for (uint64_t found = 0; rest.end - rest.at >= 8 && !found; rest.at += found ? __builtin_ctzll(found) / 8 : 8) {
        uint64_t word = load64(rest.at);
        found = matches(word, delimiter) | matches(word, quote) | matches(word, '\n') | matches(word, '\r');
    }
    while (rest.at < rest.end && !ends_field(layout, rest) && !has(rest, quote))
        rest.at++;
    field->end = rest.at;
    return ends_field(layout, rest) ? rest.at : NULL;
}

/* Reads a row. Returns where the next one begins, or NULL if the row is left to Python. */
INLINE const uint8_t *read_row(const csv_layout *layout, const uint8_t *block, span rest, int64_t row) {
    int64_t index = 0, number = 0;
    for (;; number++, rest.at++) {
        const column *wanted = layout->columns + index;
        int is_wanted = index < layout->count && wanted->field == number, is_read = 0;
        int64_t kind = is_wanted ? wanted->kind : TEXT, size = kind == INT32 || kind == FLOAT32 ? 4 : 8, flags = 0;
        place *places = layout->places + index * layout->rows_max;
        uint8_t *target = (uint8_t *)places + row * size;
        span field = rest, after = rest;
        if (kind != TEXT && layout->is_direct) {
            field.end = after.at = read_number(rest, kind, target);
            is_read = after.at && ends_field(layout, after);
        }
        if (!is_read && !(after.at = find_field(layout, rest, &field, &flags)))
            return NULL;
        rest.at = after.at;
        if (is_wanted) {
            size_t length = (size_t)(field.end - field.at);
            int is_missing = !length || (length == layout->na_size && !memcmp(field.at, layout->na_value, length));
            if (is_missing && !wanted->has_default)
                return NULL;
            if (kind == TEXT) {
                summary *found = layout->summaries + index;
                found->longest = found->longest > (int64_t)length ? found->longest : (int64_t)length;
                found->flags |= flags | (is_missing ? MISSING : field.end[-1] ? 0 : ENDS_IN_ZERO);
                places[row] = (place){field.at - block, is_missing ? -1 : (int64_t)length};
            } else if (is_missing)
                memcpy(target, &wanted->initial, (size_t)size);
            else if (!is_read && read_number(field, kind, target) != field.end)
                return NULL;
            index++;
        }
        if (*rest.at != layout->delimiter)
            break;
    }
    if (number + 1 < layout->fields_min || number + 1 > layout->fields_max)
        return NULL;
    if (*rest.at++ == '\r') {
        if (rest.at == rest.end)
            return NULL;   /* a line feed may follow */
        rest.at += *rest.at == '\n';
    }
    return rest.at;
}

/* Reads the rows from `position` on, of which the first has the index `row`. Stores where they and the next one begin,
   their numbers and the positions of their texts. Returns the index of the row that it stops at. */
KERNEL int64_t read_rows(const uint8_t *block, int64_t size, int64_t position, int64_t row, const csv_layout *given) {
    span rest = {block + position, block + size};
    csv_layout layout = *given;   /* which no store through a pointer can change */
    for (;; row++) {
        layout.starts[row] = rest.at - block;
        if (row == layout.rows_max || !(rest.at = read_row(&layout, block, rest, row)))
            return row;
    }
}

/* Copies texts to strings of `width` bytes, a multiple of 8, filled up with zeros. Two quotation marks become one if
   `is_doubled`. A place outside of the block is empty. Returns the number of texts. */
KERNEL int64_t copy_texts(const uint8_t *block, int64_t size, const place *places, int64_t count, int64_t width,
                          int64_t is_doubled, uint8_t *target) {
    for (int64_t i = 0; i < count; i++, target += width) {
        int64_t begin = places[i].begin, left = places[i].length;
        if (begin < 0 || begin > size || left > size - begin || left > width)
            left = 0;
        if (is_doubled) {
            int64_t copied = 0;
            for (int64_t at = begin; at < begin + left; at += block[at] == '"' ? 2 : 1)
                target[copied++] = block[at];
            memset(target + copied, 0, (size_t)(width - copied));
            continue;
        }
        for (int64_t at = 0; at < width; at += 8, left -= 8) {
            uint64_t word = left <= 0 ? 0 : load_some(block + begin + at, size - begin - at);
            if (left < 8)
                word &= left <= 0 ? 0 : (UINT64_C(1) << 8 * left) - 1;
            memcpy(target + at, &word, sizeof word);
        }
    }
    return count;
}
