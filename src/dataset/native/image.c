/* Images: changes the height and width. io/image/resize.py computes the weights. */

#include "native.h"

typedef float four __attribute__((vector_size(16)));   /* the sums of four channels cost as much as one */

/* The new positions along an axis. Each is a weighted sum of `taps` old ones, whose numbers are in `old`. The second taps
   of all new positions follow their first taps. */
typedef struct { int64_t size, taps; const int64_t *old; const float *weights; } axis;

/* An image of rows of `width` bytes or floats, and where its result is stored; resize.py fills it as an array. `sums`
   has room for a row of the old and one of the new width, and three numbers more for each. */
typedef struct {
    const void *image;
    int64_t is_float, width, channels;
    axis rows, columns;
    float *sums, *out;
} resizing;

/* Computes a new row in the old width, from two rows of the image at a time. */
INLINE void sum_rows(const resizing *given, int is_float, int64_t y, float *restrict sums) {
    axis rows = given->rows;
    const uint8_t *octets = given->image;
    const float *floats = given->image;
    for (int64_t at = y, end = rows.taps * rows.size; at < end; at += 2 * rows.size) {
        int64_t next = at + rows.size < end ? at + rows.size : at, is_first = at == y, is_last = next == at;
        int64_t begin = rows.old[at] * given->width, next_begin = rows.old[next] * given->width;
        float weight = rows.weights[at], next_weight = rows.weights[next];
        for (int64_t i = 0; i < given->width; i++) {
            float sum = is_first ? 0 : sums[i];
            sum += (is_float ? floats[begin + i] : octets[begin + i]) * weight;
            sums[i] = is_last ? sum : sum + (is_float ? floats[next_begin + i] : octets[next_begin + i]) * next_weight;
        }
    }
}

/* Computes a row in the new width. Reads and writes up to three numbers after its end; later stores replace them. */
INLINE void sum_columns(axis columns, int64_t taps, int64_t channels, const float *sums, float *line) {
    for (int64_t x = 0; x < columns.size; x++, line += channels)
        for (int64_t channel = 0; channel < channels; channel += 4) {
            four sum = {0}, part;
            for (int64_t tap = 0, at = x; tap < taps; tap++, at += columns.size) {
                memcpy(&part, sums + columns.old[at] * channels + channel, sizeof part);
                sum += part * columns.weights[at];
            }
            memcpy(line + channel, &sum, sizeof sum);
        }
}

INLINE int64_t resize(resizing given) {
    int64_t size = given.columns.size * given.channels, taps = given.columns.taps;
    for (int64_t y = 0; y < given.rows.size; y++, given.out += size) {
        int has_room = (given.rows.size - y - 1) * size >= 3;   /* for the numbers after the end of the row */
        float *line = has_room ? given.out : given.sums + given.width + 3;
        given.is_float ? sum_rows(&given, 1, y, given.sums) : sum_rows(&given, 0, y, given.sums);
        if (taps == 2 && given.channels == 3)
            sum_columns(given.columns, 2, 3, given.sums, line);   /* twice as fast */
        else
            sum_columns(given.columns, taps, given.channels, given.sums, line);
        if (!has_room)
            memcpy(given.out, line, (size_t)size * sizeof *line);
    }
    return given.rows.size;
}

#if defined(__x86_64__) && !defined(PORTABLE)
__attribute__((target("avx2"))) static int64_t resize_by_avx2(const resizing *given) { return resize(*given); }
#endif

/* Resizes an image. Returns the number of its rows. */
KERNEL int64_t resample(const resizing *given) {
#if defined(__x86_64__) && !defined(PORTABLE)
    if (__builtin_cpu_supports("avx2"))
        return resize_by_avx2(given);
#endif
    return resize(*given);
}
