/* test_store.c - tests of store_bytes(): it stores these bytes and no others. */
#include "kernel/base/store.h"

#include "tests/unit/unit.h"

UNIT_TEST(these_bytes_and_no_others)
{
    static const uint8_t bytes[] = "abcdefghijklmnop";
    _Alignas(16) uint8_t got[32], want[32];

    for (size_t off = 0; off < 8; off++) {
        for (size_t len = 1; len <= 16; len++) {
            memset(got, '.', sizeof(got));
            memset(want, '.', sizeof(want));
            store_bytes(got + off, bytes, len);
            memcpy(want + off, bytes, len);
            CHECK(memcmp(got, want, sizeof(got)) == 0);
        }
    }
}

UNIT_TESTS()
