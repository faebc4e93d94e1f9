/* Rows of different lengths: copies them one after another, or to the beginnings of longer rows. */

#include "native.h"

/* Copies rows of items of `size` bytes to `out`: those at `indices`, or the first ones if it is NULL. Row i is from
   splits[i] to splits[i + 1] in the `total` items of `values`. A copy begins `width` items after the one before; or if
   `width` is negative, where that ends, and there is room for `room` items. Returns the number of rows that fit. */
KERNEL int64_t copy_rows(const uint8_t *values, int64_t total, const int64_t *splits, const int64_t *indices,
                         int64_t count, uint8_t *out, int64_t room, int64_t width, int64_t size) {
    for (int64_t i = 0; i < count; i++) {
        int64_t row = indices ? indices[i] : i, begin = splits[row], end = splits[row + 1];
        if (begin < 0 || end < begin || end > total || end - begin > (width < 0 ? room : width))
            return i;
        memcpy(out, values + begin * size, (size_t)((end - begin) * size));
        out += (width < 0 ? end - begin : width) * size;
        room -= end - begin;
    }
    return count;
}
