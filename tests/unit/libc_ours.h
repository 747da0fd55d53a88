/* libc_ours.h - declares two C libraries for the tests of libc/: the host's functions
 * under their own names, and ours as our_memcpy and so on.
 */
#pragma once

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/libc_rename.h"

#include "libc/include/ctype.h"
#include "libc/include/stdio.h"
#include "libc/include/stdlib.h"
#include "libc/include/string.h"

#define LIBC_RENAME_END
#include "tests/unit/libc_rename.h"
#undef LIBC_RENAME_END
