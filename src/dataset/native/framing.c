/* TFRecord frames: finds the frames of a block and verifies both of their checksums.

   A frame is the length of the data (8 bytes), the masked CRC-32C of these bytes (4), the data, and the masked CRC-32C
   of the data (4); io/tfrecord/frames.py defines it. The CRC uses the instructions of the processor if it has them.
   Otherwise it takes eight bytes at a time from eight tables ("slicing by 8", Kounavis and Berry 2005). */

#include "native.h"

#define HEADER_BYTES 12
#define FOOTER_BYTES 4
#define MASK_DELTA 0xa282ead8u

typedef uint32_t crc_function(const uint8_t *data, size_t size);

/* A CRC is linear, so eight numbers give the 256 entries of a table: the effects of the single bits of a byte. */
#define BIT(byte, bit, effect) ((byte) >> (bit) & 1 ? (uint32_t)(effect) : 0)
#define BYTE(i, a, b, c, d, e, f, g, h) \
    (BIT(i, 0, a) ^ BIT(i, 1, b) ^ BIT(i, 2, c) ^ BIT(i, 3, d) ^ BIT(i, 4, e) ^ BIT(i, 5, f) ^ BIT(i, 6, g) ^ BIT(i, 7, h))
#define BYTES_4(i, ...) \
    BYTE(i, __VA_ARGS__), BYTE(i + 1, __VA_ARGS__), BYTE(i + 2, __VA_ARGS__), BYTE(i + 3, __VA_ARGS__)
#define BYTES_16(i, ...) \
    BYTES_4(i, __VA_ARGS__), BYTES_4(i + 4, __VA_ARGS__), BYTES_4(i + 8, __VA_ARGS__), BYTES_4(i + 12, __VA_ARGS__)
#define BYTES_64(i, ...) \
    BYTES_16(i, __VA_ARGS__), BYTES_16(i + 16, __VA_ARGS__), BYTES_16(i + 32, __VA_ARGS__), BYTES_16(i + 48, __VA_ARGS__)
#define TABLE(...) \
    {BYTES_64(0, __VA_ARGS__), BYTES_64(64, __VA_ARGS__), BYTES_64(128, __VA_ARGS__), BYTES_64(192, __VA_ARGS__)}

static const uint32_t TABLES[8][256] = {
    TABLE(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede, 0x417b1dbc, 0x82f63b78),
    TABLE(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302, 0xff17c604, 0xfbc3faf9),
    TABLE(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14, 0xc76580d9, 0x8b277743),
    TABLE(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b, 0xaba65fe7, 0x52a0c93f),
    TABLE(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557, 0x37516aae, 0x6ea2d55c),
    TABLE(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d, 0x0e045beb, 0x1c08b7d6),
    TABLE(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a, 0xf56e0ef4),
    TABLE(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599, 0x1a00cb32, 0x34019664),
};

static uint32_t crc_by_tables(const uint8_t *data, size_t size) {
    uint32_t crc = ~0u;
    for (; size >= 8; data += 8, size -= 8) {
        uint64_t word = load64(data) ^ crc;
        crc = 0;
        for (int i = 0; i < 8; i++)
            crc ^= TABLES[7 - i][word >> (8 * i) & 255];
    }
    while (size--)
        crc = crc >> 8 ^ TABLES[0][(crc ^ *data++) & 255];
    return ~crc;
}

#if defined(__x86_64__) && !defined(PORTABLE)
#include <nmmintrin.h>
#include <wmmintrin.h>

#if defined(__clang__) && __clang_major__ >= 14
#define WITH_CRC __attribute__((target("sse4.2,crc32,pclmul")))
#else
#define WITH_CRC __attribute__((target("sse4.2,pclmul")))
#endif

/* An instruction has a latency of three cycles and one can start in each cycle. So three runs of the data are computed
   at once and joined: a carry-less multiplication by SHIFTS advances the register over the bytes of the other runs
   (Gopal et al. 2011). A shift over n bytes is x^(8n - 33) modulo the polynomial, in reversed order of bits. */
static const struct {
    size_t run;
    uint32_t two, one;
} SHIFTS[] = {
    {4096, 0x54a86326, 0x82f89c77},
    {1024, 0xa51b6135, 0x170076fa},
    {256, 0xdd7e3b0c, 0xb9e02b86},
    {64, 0x0d3b6092, 0x9e4addf8},
};

WITH_CRC static uint64_t shifted(uint64_t crc, uint32_t by) {
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)crc), _mm_cvtsi32_si128((int32_t)by), 0);
    return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

WITH_CRC static uint32_t crc_by_instructions(const uint8_t *data, size_t size) {
    uint64_t crc = ~0u;
    for (size_t i = 0; i < sizeof SHIFTS / sizeof SHIFTS[0]; i++) {
        size_t run = SHIFTS[i].run;
        for (; size >= 3 * run; data += 3 * run, size -= 3 * run) {
            uint64_t second = 0, third = 0;
            for (size_t at = 0; at < run; at += 8) {
                crc = _mm_crc32_u64(crc, load64(data + at));
                second = _mm_crc32_u64(second, load64(data + run + at));
                third = _mm_crc32_u64(third, load64(data + 2 * run + at));
            }
            crc = shifted(crc, SHIFTS[i].two) ^ shifted(second, SHIFTS[i].one) ^ third;
        }
    }
    for (; size >= 8; data += 8, size -= 8)
        crc = _mm_crc32_u64(crc, load64(data));
    while (size--)
        crc = _mm_crc32_u8((uint32_t)crc, *data++);
    return ~(uint32_t)crc;
}

static crc_function *fastest_crc(void) {
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") ? crc_by_instructions : crc_by_tables;
}

#elif defined(__aarch64__) && (defined(__linux__) || defined(__APPLE__)) && !defined(PORTABLE)
#ifdef __linux__
#include <sys/auxv.h>
#endif

static uint32_t crc_by_instructions(const uint8_t *data, size_t size) {
    uint32_t crc = ~0u;
    for (; size >= 8; data += 8, size -= 8)
        __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(load64(data)));
    for (; size; data++, size--)
        __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"((uint32_t)*data));
    return ~crc;
}

static crc_function *fastest_crc(void) {
#ifdef __linux__
    int has_crc = getauxval(AT_HWCAP) >> 7 & 1; /* HWCAP_CRC32 */
#else
    int has_crc = 1;
#endif
    return has_crc ? crc_by_instructions : crc_by_tables;
}

#else
static crc_function *fastest_crc(void) { return crc_by_tables; }
#endif

static int is_sound(crc_function *crc_of, const uint8_t *data, size_t size) {
    uint32_t crc = crc_of(data, size);
    return load32(data + size) == (crc >> 15 | crc << 17) + MASK_DELTA;
}

/* Finds consecutive complete frames from ``position`` on. Writes where the data of each begins and ends to ``edges``, which
   has room for ``size`` / 16 pairs. Verifies the lengths if ``verify`` is 1, and the data, too, if it is 2; stops before a
   frame with a wrong checksum. Returns the number of frames. */
KERNEL int64_t find_frames(const uint8_t *block, int64_t size, int64_t position, int32_t verify, int64_t *edges) {
    crc_function *crc_of = fastest_crc();
    int64_t count = 0;
    for (; size - position >= HEADER_BYTES + FOOTER_BYTES; count++) {
        const uint8_t *frame = block + position;
        uint64_t length = load64(frame);
        if (length > (uint64_t)(size - position - HEADER_BYTES - FOOTER_BYTES))
            break;
        if (verify >= 1 && !is_sound(crc_of, frame, 8))
            break;
        if (verify >= 2 && !is_sound(crc_of, frame + HEADER_BYTES, length))
            break;
        edges[2 * count] = position + HEADER_BYTES;
        edges[2 * count + 1] = position += HEADER_BYTES + (int64_t)length;
        position += FOOTER_BYTES;
    }
    return count;
}
