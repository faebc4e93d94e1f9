/* What all kernels share. The rules for kernels are in __init__.py. */

#ifndef DATASET_NATIVE_H
#define DATASET_NATIVE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the formats are little-endian, and the kernels read their numbers without conversion"
#endif

/* A function that library.py declares. All others are static. */
#ifdef _WIN32
#define KERNEL __declspec(dllexport)
#else
#define KERNEL __attribute__((visibility("default")))
#endif

#define INLINE static inline __attribute__((always_inline))
#define TOP_BITS UINT64_C(0x8080808080808080)   /* of the bytes of a word */

typedef struct { const uint8_t *at, *end; } span;

/* Unaligned numbers. */
static inline uint32_t load32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static inline uint64_t load64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

#endif
