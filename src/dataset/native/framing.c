/* TFRecord frames: finds the frames of a block and verifies both of their checksums.

   A frame is the length of the data (8 bytes), the masked CRC-32C of these bytes (4), the data, and the masked CRC-32C
   of the data (4); io/tfrecord/frames.py defines it. The CRC needs instructions that nearly all processors have. */

#include "native.h"

#define MASK_DELTA 0xa282ead8u

enum { HEADER_BYTES = 12, FOOTER_BYTES = 4 };

typedef uint32_t crc_function(const uint8_t *data, size_t size);

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
static const struct { size_t run; uint32_t two, one; } SHIFTS[] = {
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

static crc_function *available_crc(void) {
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") ? crc_by_instructions : NULL;
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

static crc_function *available_crc(void) {
#ifdef __linux__
    int has_crc = getauxval(AT_HWCAP) >> 7 & 1; /* HWCAP_CRC32 */
#else
    int has_crc = 1;
#endif
    return has_crc ? crc_by_instructions : NULL;
}

#else
static crc_function *available_crc(void) { return NULL; }
#endif

static int is_sound(crc_function *crc_of, const uint8_t *data, size_t size) {
    uint32_t crc = crc_of(data, size);
    return load32(data + size) == (crc >> 15 | crc << 17) + MASK_DELTA;
}

/* Finds consecutive complete frames from `position` on. Writes where the data of each begins and ends to `edges`, which
   has room for `size` / 16 pairs. Verifies the lengths if `verify` is 1, and the data, too, if it is 2; stops before a
   frame with a wrong checksum. Returns the number of frames, or -1 if the processor can't compute checksums. */
KERNEL int64_t find_frames(const uint8_t *block, int64_t size, int64_t position, int32_t verify, int64_t *edges) {
    crc_function *crc_of = available_crc();
    int64_t count = 0;
    if (verify && !crc_of)
        return -1;
    for (; size - position >= HEADER_BYTES + FOOTER_BYTES; count++) {
        const uint8_t *frame = block + position;
        uint64_t length = load64(frame);
        if (length > (uint64_t)(size - position - HEADER_BYTES - FOOTER_BYTES))
            break;
        if ((verify >= 1 && !is_sound(crc_of, frame, 8)) ||
            (verify >= 2 && !is_sound(crc_of, frame + HEADER_BYTES, length)))
            break;
        edges[2 * count] = position + HEADER_BYTES;
        edges[2 * count + 1] = position += HEADER_BYTES + (int64_t)length;
        position += FOOTER_BYTES;
    }
    return count;
}
