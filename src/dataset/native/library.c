/* What library.py asks about the library itself. */

#include "native.h"

KERNEL const char kernel_sources[] = KERNEL_SOURCES; /* a hash of the files that were compiled */
