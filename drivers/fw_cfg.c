/* fw_cfg.c - QEMU's fw_cfg device, by its two ports: select an item, read its bytes one after
 * the other. Runs at boot.
 */
#include "drivers/fw_cfg.h"

#include "kernel/base/compiler.h"
#include "kernel/base/err.h"
#include "kernel/cpu/instr.h"

#include <stdint.h>
#include <string.h>

#define SELECTOR_PORT 0x510
#define DATA_PORT 0x511

#define ITEM_SIGNATURE 0x0000
#define ITEM_DIRECTORY 0x0019

#define NAME_LEN 56

/* A row of the device's directory of files. Numbers are big endian. */
struct fw_cfg_file {
    uint32_t size;
    uint16_t item;
    uint16_t reserved;
    char name[NAME_LEN];
};

_Static_assert(sizeof(struct fw_cfg_file) == 64, "layout of the device");

static INIT void item_select(uint16_t item)
{
    outw(SELECTOR_PORT, item);
}

/* Read the next @len bytes of the selected item. */
static INIT void item_read(void *out, size_t len)
{
    uint8_t *bytes = out;

    for (size_t i = 0; i < len; i++)
        bytes[i] = inb(DATA_PORT);
}

static INIT bool fw_cfg_is_present(void)
{
    char signature[4];

    item_select(ITEM_SIGNATURE);
    item_read(signature, sizeof(signature));
    return memcmp(signature, "QEMU", sizeof(signature)) == 0;
}

static INIT bool file_find(const char *name, struct fw_cfg_file *file)
{
    uint32_t count;

    item_select(ITEM_DIRECTORY);
    item_read(&count, sizeof(count));
    count = __builtin_bswap32(count);
    while (count--) {
        item_read(file, sizeof(*file));
        file->name[NAME_LEN - 1] = '\0';
        if (strcmp(file->name, name) == 0)
            return true;
    }
    return false;
}

/* fw_cfg_entry_read - read row @i of the directory. Return: false: there is no such row. */
static INIT bool fw_cfg_entry_read(uint32_t i, struct fw_cfg_file *file)
{
    uint32_t count;

    item_select(ITEM_DIRECTORY);
    item_read(&count, sizeof(count));
    if (i >= __builtin_bswap32(count))
        return false;
    for (uint32_t k = 0; k <= i; k++)
        item_read(file, sizeof(*file));
    file->name[NAME_LEN - 1] = '\0';
    return true;
}

INIT void fw_cfg_for_each(const char *prefix,
                          void (*fn)(const char *name, size_t len, unsigned number))
{
    size_t len = strlen(prefix);
    struct fw_cfg_file file;

    if (!fw_cfg_is_present())
        return;
    for (uint32_t i = 0; fw_cfg_entry_read(i, &file); i++)
        if (strncmp(file.name, prefix, len) == 0)
            fn(file.name + len, __builtin_bswap32(file.size),
               __builtin_bswap16(file.item));
}

INIT void fw_cfg_read_bytes(unsigned number, void *out, size_t len)
{
    item_select((uint16_t)number);
    item_read(out, len);
}

INIT int fw_cfg_read_file(const char *name, char *out, size_t cap)
{
    struct fw_cfg_file file;
    size_t len;

    if (!fw_cfg_is_present())
        return -ENODEV;
    if (!file_find(name, &file))
        return -ENOENT;
    len = __builtin_bswap32(file.size);
    if (len > cap - 1)
        len = cap - 1;
    item_select(__builtin_bswap16(file.item));
    item_read(out, len);
    out[len] = '\0';
    return (int)len;
}
