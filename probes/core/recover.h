/* recover.h - reads text as it would be if no probe were armed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* recover_bytes - read @len bytes at @addr, with the original in place of every byte that
 * the engine has changed. An int3 that is not the engine's stays one.
 * Context: thread or held or panic.  Locks: PLAT_PROBES held. In a panic none, as no other
 * thread runs.  Return: 0; -EFAULT.
 */
int recover_bytes(uint8_t *out, uintptr_t addr, size_t len);
