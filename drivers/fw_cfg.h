/* fw_cfg.h - files that QEMU's command line hands to the guest. */
#pragma once

#include <stddef.h>

/* fw_cfg_for_each - call @fn for each file whose name begins with @prefix, of which @name is
 * what is behind it, and @len the bytes. @fn may read it by fw_cfg_read_bytes().
 * fw_cfg_read_bytes - all of a file, without a NUL. @number: as @fn was given
 *
 * Context: boot or thread, one at a time.
 */
void fw_cfg_for_each(const char *prefix,
                     void (*fn)(const char *name, size_t len, unsigned number));
void fw_cfg_read_bytes(unsigned number, void *out, size_t len);

/* fw_cfg_read_file - read a file given by `-fw_cfg name=...`.
 * @name:  its full name, at most 55 characters
 * @out:   gets the content, cut to @cap - 1 bytes, and a NUL
 *
 * Context: boot or thread, one at a time: the device has one position.
 * Return:  the length of what is in @out; -ENODEV not under QEMU; -ENOENT no such file.
 * Source:  QEMU, docs/specs/fw_cfg.
 */
int fw_cfg_read_file(const char *name, char *out, size_t cap);
