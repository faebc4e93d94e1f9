/* tf.train.Example, SequenceExample: finds the lists of requested features in many records, decodes them into columns.

   A record is a message; io/example/reference.py defines its meaning. A message is a series of fields, each a tag
   (number << 3 | wire type) and its content:

       Example { 1: Features { 1*: Entry { 1: key, 2: Feature { 1: BytesList | 2: FloatList | 3: Int64List } } } }
       BytesList { 1*: bytes }    FloatList { 1*: packed floats | float }    Int64List { 1*: packed varints | varint }
       SequenceExample { 1: Features, 2: FeatureLists { 1*: Entry { 1: key, 2: FeatureList { 1*: Feature } } } }

   Unknown fields are skipped. A record is refused if it is damaged, and also if it is valid but so unusual that its
   rules are left to protobuf: groups, known fields of another wire type, and fields that are merged with an earlier one
   of the same message. The caller then reads it with protobuf. */

#include "native.h"

enum { BYTES = 1, FLOAT = 2, INT64 = 3 };   /* the kinds of lists: their field numbers in Feature */
enum { DELIMITED = 2, FIRST_DELIMITED = 10, SECOND_DELIMITED = 18, FIRST_VARINT = 8, FIRST_FIXED = 13 };   /* tags */

/* The table of what was found has these rows for each key, each with a column for each record. KIND is 0 if the record
   has no list. SEVERAL is added to it unless the list is one field of packed numbers or one value of bytes, which then
   lies from START to END; otherwise the list itself does. Positions are relative to the record. */
enum { KIND, START, END, COUNT, ROWS, SEVERAL = 4 };

/* A summary for each key: the set of KINDs as bits, the number of values in each record and in all, the sum of
   END - START, and the size of each record's only value of bytes. MIXED says that records differ. */
enum { KINDS, EACH, TOTAL, OCTETS, WIDTH, SUMMARY, MIXED = -1 };

typedef struct { uint64_t tag; span content; } field;

/* Reads a varint of up to `octets` bytes; bits beyond the 64th are dropped. Returns 0 if there is none. */
static inline int read_varint(span *from, int octets, uint64_t *value) {
    uint64_t result = 0;
    const uint8_t *at = from->at;
    for (int shift = 0; shift < 7 * octets && at < from->end; shift += 7) {
        uint64_t octet = *at++;
        result |= (octet & 0x7f) << shift;
        if (octet < 0x80) {
            from->at = at;
            *value = result;
            return 1;
        }
    }
    return 0;
}

/* Reads the next field of a message. Returns 0 if there is no whole one, or it is refused. */
static inline int read_field(span *message, field *found) {
    uint64_t size, ignored;
    if (!read_varint(message, 4, &found->tag) || found->tag < 8)
        return 0;
    found->content.at = message->at;
    switch (found->tag & 7) {
    case 0:
        if (!read_varint(message, 10, &ignored))
            return 0;
        found->content.end = message->at;
        return 1;
    case 1:
        size = 8;
        break;
    case DELIMITED:
        if (!read_varint(message, 5, &size))
            return 0;
        break;
    case 5:
        size = 4;
        break;
    default:
        return 0;
    }
    if (size > (uint64_t)(message->end - message->at))
        return 0;
    found->content.at = message->at;
    found->content.end = message->at += size;
    return 1;
}

/* Returns the number of bytes of a word whose bits in `stops` are set. */
static inline uint64_t count_stops(uint64_t stops) {
    return (stops >> 7) * UINT64_C(0x0101010101010101) >> 56;
}

/* Returns the number of bytes up to the first one whose bit in `stops`, not 0, is set. */
static inline int first_stop(uint64_t stops) {
    return (__builtin_ctzll(stops) + 1) / 8;
}

/* Returns the number of packed varints, or -1 if one is damaged: cut off, or longer than ten bytes. Each ends in a byte
   whose top bit is clear. */
static int64_t count_varints(span packed) {
    int64_t count = 0;
    int begun = 0;   /* bytes of a varint that has not ended */
    for (; packed.end - packed.at >= 8; packed.at += 8) {
        uint64_t stops = ~load64(packed.at) & TOP_BITS;
        if (begun + (stops ? first_stop(stops) : 8) > 10)
            return -1;
        begun = stops ? __builtin_clzll(stops) / 8 : begun + 8;
        count += (int64_t)count_stops(stops);
    }
    for (; packed.at < packed.end; packed.at++) {
        if (begun++ == 10)
            return -1;
        begun *= *packed.at >= 0x80;
        count += !begun;
    }
    return begun ? -1 : count;
}

/* Returns the number of values in a list, or -1 if it is refused. Reduces a list of one field of packed numbers, or of
   one value of bytes, to the content; otherwise adds SEVERAL to the kind. */
static int64_t count_values(int64_t *kind, span *list) {
    int64_t count = 0, more = 0, fields = 0;
    span rest = *list;
    field one = {0};
    for (; rest.at < rest.end; count += more, fields++) {
        if (!read_field(&rest, &one))
            return -1;
        int64_t size = one.content.end - one.content.at;
        more = 1;   /* unless the field is packed */
        if (one.tag != FIRST_DELIMITED) {
            if (one.tag != (*kind == FLOAT ? FIRST_FIXED : FIRST_VARINT) || *kind == BYTES)
                return -1;
        } else if (*kind == INT64)
            more = count_varints(one.content);
        else if (*kind == FLOAT)
            more = size % 4 ? -1 : size / 4;
        if (more < 0)
            return -1;
    }
    if (fields == 1 && one.tag == FIRST_DELIMITED)
        *list = one.content;
    else
        *kind += SEVERAL;
    return count;
}

/* The records, what is requested, and where to store what is found; kernel_columns.py declares the same structure. The
   content of a record begins `header` bytes after its address. If `lengths` is NULL, the records are objects of CPython
   of the type at `type`, `bytes`; before their content are the type, the length, and a hash. */
typedef struct {
    intptr_t header;
    const intptr_t *addresses;
    const int64_t *lengths;
    intptr_t type;
    int64_t records;
    const uint8_t *key_octets;   /* all keys, shorter ones first, and in the order of their bytes */
    const int64_t *key_ends;     /* where the first key begins, and where each ends */
    int64_t keys;
    int64_t in_lists;            /* whether the keys are in field 2, the feature lists, and not in field 1 */
    int64_t *table, *summary;
} batch;

/* Compares two keys, first by length. */
static inline int compare(const uint8_t *key, int64_t size, span other) {
    int64_t difference = size - (other.end - other.at);
    return difference ? (difference < 0 ? -1 : 1) : memcmp(key, other.at, (size_t)size);
}

/* Returns the index of a key, or -1. `guess` is tried first. */
static inline int64_t find_key(const batch *batch, span key, int64_t guess) {
    int64_t low = 0, high = batch->keys, middle = guess;
    while (low < high) {
        const int64_t *begin = batch->key_ends + middle;
        int order = compare(batch->key_octets + begin[0], begin[1] - begin[0], key);
        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
        middle = (low + high) / 2;
    }
    return -1;
}

/* Reads a Feature. Returns the number of values in its list, or -1 if it is refused. */
static int64_t read_feature(span feature, int64_t *kind, span *list) {
    field part;
    for (*kind = 0, *list = (span){feature.at, feature.at}; feature.at < feature.end;) {
        if (!read_field(&feature, &part))
            return -1;
        if (part.tag >> 3 > INT64)
            continue;
        if (*kind || (part.tag & 7) != DELIMITED)
            return -1;
        *kind = (int64_t)(part.tag >> 3);
        *list = part.content;
    }
    return *kind ? count_values(kind, list) : 0;
}

static inline int64_t *cell_at(const batch *batch, int64_t key, int64_t row) {
    return batch->table + key * ROWS * batch->records + row;
}

static void store(const batch *batch, int64_t *cell, const uint8_t *record, int64_t kind, span list, int64_t count) {
    int64_t values[ROWS] = {kind, list.at - record, list.end - record, count};
    for (int64_t i = 0; i < ROWS; i++)
        cell[i * batch->records] = values[i];
}

/* Reads an entry of the map of features, or of feature lists; stores the list in column `row` of the key's part of the
   table. Returns 0 if it is refused. The steps of a feature list, whose kind is 1, are found by find_steps. */
static int read_entry(const batch *batch, int64_t row, const uint8_t *record, span entry, int64_t *guess) {
    field part;
    span key = {entry.at, entry.at}, feature = key, list = key, step;
    int64_t kind = 1, count = 0, step_kind;
    uint64_t seen = 0;
    while (entry.at < entry.end) {
        if (!read_field(&entry, &part) || (part.tag != FIRST_DELIMITED && part.tag != SECOND_DELIMITED) ||
            part.tag <= seen)
            return 0;
        seen = part.tag;
        *(part.tag == FIRST_DELIMITED ? &key : &feature) = part.content;
    }
    int64_t found = find_key(batch, key, *guess);
    if (found < 0)
        return 1;
    *guess = found + 1 < batch->keys ? found + 1 : 0;
    if (!batch->in_lists)
        count = read_feature(feature, &kind, &list);
    else
        for (list = feature; feature.at < feature.end; count++)
            if (!read_field(&feature, &part) || part.tag != FIRST_DELIMITED ||
                read_feature(part.content, &step_kind, &step) < 0)
                return 0;
    if (count >= 0)
        store(batch, cell_at(batch, found, row), record, kind, list, count);
    return count >= 0;
}

static inline const uint8_t *record_at(const batch *batch, int64_t row) {
    return (const uint8_t *)(batch->addresses[row] + batch->header);
}

/* Finds the lists of all keys in one record; stores them in column `row` of the table. Returns 0 if it is refused. */
static int read_record(const batch *batch, int64_t row, int64_t *guess) {
    const uint8_t *record = record_at(batch, row);
    const intptr_t *header = (const intptr_t *)(const void *)record;
    int64_t is_object = !batch->lengths && batch->addresses[row] && header[-3] == batch->type;
    int64_t length = batch->lengths ? batch->lengths[row] : is_object ? header[-2] : INT64_MAX;
    if (length > INT32_MAX)
        return 0;
    span example = {record, record + length};
    field features, entry;
    for (int64_t i = 0; i < batch->keys * ROWS; i++)
        batch->table[i * batch->records + row] = 0;
    while (example.at < example.end) {
        if (!read_field(&example, &features))
            return 0;
        if (features.tag >> 3 != (batch->in_lists ? 2 : 1))
            continue;
        if ((features.tag & 7) != DELIMITED)
            return 0;
        while (features.content.at < features.content.end) {
            if (!read_field(&features.content, &entry))
                return 0;
            if (entry.tag >> 3 > 1)
                continue;
            if (entry.tag != FIRST_DELIMITED || !read_entry(batch, row, record, entry.content, guess))
                return 0;
        }
    }
    return 1;
}

static void add_to_summary(const batch *batch, int64_t key, int64_t row) {
    const int64_t records = batch->records, *cell = cell_at(batch, key, row);
    int64_t *sums = batch->summary + key * SUMMARY, kind = cell[KIND * records], count = cell[COUNT * records];
    int64_t octets = cell[END * records] - cell[START * records], width = kind == BYTES ? octets : MIXED;
    sums[EACH] = row && sums[EACH] != count ? MIXED : count;
    sums[WIDTH] = row && sums[WIDTH] != width ? MIXED : width;
    sums[KINDS] |= INT64_C(1) << kind;
    sums[TOTAL] += count;
    sums[OCTETS] += octets;
}

/* Finds the lists of all keys in the records from `row` on. Returns the first record that is refused, or their number. */
KERNEL int64_t find_features(const batch *batch, int64_t row) {
    int64_t records = batch->records, guess = 0;
    if (row == 0)
        memset(batch->summary, 0, (size_t)(batch->keys * SUMMARY) * sizeof *batch->summary);
    for (; row < records && read_record(batch, row, &guess); row++)
        for (int64_t key = 0; key < batch->keys; key++)
            add_to_summary(batch, key, row);
    return row;
}

/* Finds the steps of a key, whose feature lists a call of find_features has found. Each is stored as a record of
   `steps`, whose only key they have. Returns the number of records, or the first one whose steps do not fit. */
KERNEL int64_t find_steps(const batch *lists, int64_t key, const batch *steps) {
    int64_t step = 0, kind, count;
    field part;
    memset(steps->summary, 0, SUMMARY * sizeof *steps->summary);
    for (int64_t row = 0; row < lists->records; row++) {
        const int64_t *cell = cell_at(lists, key, row);
        const uint8_t *record = record_at(lists, row);
        span rest = {record + cell[START * lists->records], record + cell[END * lists->records]}, list;
        for (; rest.at < rest.end; step++) {
            if (step == steps->records || !read_field(&rest, &part) || part.tag != FIRST_DELIMITED ||
                (count = read_feature(part.content, &kind, &list)) < 0)
                return row;
            store(steps, cell_at(steps, 0, step), record, kind, list, count);
            add_to_summary(steps, 0, step);
        }
    }
    return lists->records;
}

/* Joins the groups of seven bits of a varint of up to eight bytes. */
static inline uint64_t join_groups(uint64_t word) {
    word &= ~TOP_BITS;
    word = (word & UINT64_C(0x007f007f007f007f)) | (word & UINT64_C(0x7f007f007f007f00)) >> 1;
    word = (word & UINT64_C(0x00003fff00003fff)) | (word & UINT64_C(0x3fff00003fff0000)) >> 2;
    return (word & UINT64_C(0x000000000fffffff)) | (word & UINT64_C(0x0fffffff00000000)) >> 4;
}

/* Decodes the first four varints of a word, whose last bytes `stops` marks, and returns their size. Unless `wide`, each
   has one or two bytes. */
static inline int decode_four(uint64_t word, uint64_t stops, int wide, int64_t *out) {
    int size = 0;
    for (int i = 0; i < 4; i++, stops &= stops - 1) {
        uint64_t octets = (word & (stops ^ (stops - 1))) >> 8 * size;
        out[i] = (int64_t)(wide ? join_groups(octets) : (octets & 0x7f) | (octets >> 1 & 0x3f80));
        size = first_stop(stops);
    }
    return size;
}

/* Decodes packed varints into `out`. Returns where the values end, or NULL if they exceed `limit` or one is damaged. */
static int64_t *decode_varints(span packed, int64_t *out, const int64_t *limit) {
    while (packed.at < packed.end) {
        uint64_t word = 0, stops = 0;
        if (packed.end - packed.at >= 8 && limit - out >= 8) {
            word = load64(packed.at);
            stops = ~word & TOP_BITS;
        }
        if (stops == TOP_BITS) {
            for (int i = 0; i < 8; i++)
                *out++ = packed.at[i];
            packed.at += 8;
        } else if (count_stops(stops) >= 4) {
            uint64_t open = ~stops & TOP_BITS;   /* two adjacent ones are in a varint of three bytes or more */
            packed.at += open & open >> 8 ? decode_four(word, stops, 1, out) : decode_four(word, stops, 0, out);
            out += 4;
        } else if (stops) {
            *out++ = (int64_t)join_groups(word & (stops ^ (stops - 1)));
            packed.at += first_stop(stops);
        } else if (out == limit || !read_varint(&packed, 10, (uint64_t *)out++))
            return NULL;
    }
    return out;
}

/* Decodes the lists of a key, which are all of one kind or missing, into the `size` bytes at `out`: int64, float32, or
   the bytes of all values one after another, and where each of at most `values` ends into `ends`. Returns the number of
   records, or the first one whose values do not fit. */
KERNEL int64_t decode_features(const batch *batch, int64_t key, int64_t kind, uint8_t *out, int64_t size, int64_t *ends,
                               int64_t values) {
    const uint8_t *begin = out, *limit = out + size;
    int64_t records = batch->records;
    for (int64_t row = 0; row < records; row++) {
        const int64_t *cell = cell_at(batch, key, row);
        const uint8_t *record = record_at(batch, row);
        field part = {0, {record + cell[START * records], record + cell[END * records]}};
        span list = part.content;
        for (int sole = cell[KIND * records] == kind; sole || list.at < list.end; sole = 0) {
            if (sole)
                list.at = list.end;
            else if (!read_field(&list, &part))
                return row;
            size_t octets = (size_t)(part.content.end - part.content.at);
            if (kind == INT64) {
                out = (void *)decode_varints(part.content, (void *)out, (const void *)limit);
                if (!out)
                    return row;
                continue;
            }
            if (octets > (size_t)(limit - out) || (kind == BYTES && !values--))
                return row;
            memcpy(out, part.content.at, octets);
            out += octets;
            if (kind == BYTES)
                *ends++ = out - begin;
        }
    }
    return records;
}
