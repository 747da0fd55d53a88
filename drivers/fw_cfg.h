/* fw_cfg.h - files that QEMU's command line gives to the guest. */
#pragma once

#include <stddef.h>

/* fw_cfg_for_each - call @fn for each file with a name that begins with @prefix. Without
 * QEMU there are no files.
 * @fn: receives the name behind @prefix, the bytes of the file, and its number for
 *      fw_cfg_read_bytes(), which @fn may call
 *
 * fw_cfg_read_bytes - read the first @len bytes of a file to @out. No NUL is added.
 * @number: of the file, from fw_cfg_for_each()
 * @len:    at most the bytes of the file
 *
 * Context: boot or thread, one caller at a time. The device has one position, and the
 *          INIT functions must not be freed yet.
 */
void fw_cfg_for_each(const char *prefix,
                     void (*fn)(const char *name, size_t len, unsigned number));
void fw_cfg_read_bytes(unsigned number, void *out, size_t len);

/* fw_cfg_read_file - read a file given by `-fw_cfg name=...`.
 * @name:  its full name, at most 55 characters
 * @out:   gets the content, cut to @cap - 1 bytes, and a NUL
 * @cap:   bytes of @out, at least 1
 *
 * Context: as above.
 * Return:  the bytes in @out, without the NUL; -ENODEV not under QEMU; -ENOENT no such file.
 * Source:  QEMU, docs/specs/fw_cfg.
 */
int fw_cfg_read_file(const char *name, char *out, size_t cap);
