/* ksyms.h - the names of functions and data, and back: those of the image, and of what was
 * loaded.
 *
 * The image's table never changes, and lookups take no lock, so they may be used anywhere.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ksym {
    const char *name;
    uintptr_t start;
    size_t size;   /* bytes; never 0 from ksyms_at */
    size_t offset; /* of the address that was looked up; 0 otherwise */
    char type;     /* as nm: T D B R for text, data, zeroed data, read-only data of global
                    * symbols, t d b r of local ones */
    const char *module; /* NULL: it is the image's */
};

/* ksyms_set_more - a socket: symbols of loaded code, which come behind those of the image.
 * @at, @next, @get: as ksyms_at(), ksyms_next() with an @iter of its own, ksyms_get() from 0
 *
 * @gone: what was loaded at @addr, and is no more: its name, or NULL
 *
 * Their names stay where they are for ever. Context: boot; the functions: any.
 */
struct ksyms_more {
    int (*at)(uintptr_t addr, struct ksym *out);
    bool (*next)(const char *name, size_t *iter, struct ksym *out);
    bool (*get)(size_t i, struct ksym *out);
    const char *(*gone)(uintptr_t addr, size_t *offset);
};
void ksyms_set_more(const struct ksyms_more *tables);

/* ksyms_withdraw - symbols of the image in [@start, @end) are not known any more. Symbols
 * that begin at @start stay: they are where something else ends.
 *
 * Context: thread. A list that is made meanwhile may leave out a symbol, or have one twice.
 */
void ksyms_withdraw(uintptr_t start, uintptr_t end);

/* ksyms_find - the symbol with a name.
 *
 * Context: any.
 * Return:  0; -ENOENT no such symbol; -EADDRNOTAVAIL several, ksyms_next lists them.
 */
int ksyms_find(const char *name, struct ksym *out);

/* ksyms_next - one after the other, by address, the symbols with a name.
 * @iter: 0 before the first call; private afterwards
 *
 * Context: any.
 * Return:  true with @out filled, false when there is no further one.
 */
bool ksyms_next(const char *name, size_t *iter, struct ksym *out);

/* ksyms_at - the symbol that an address belongs to.
 *
 * Where several symbols contain the address, it is the innermost one with a size of its
 * own. Padding between functions belongs to no symbol. A label without a size has
 * everything up to the next symbol.
 *
 * Context: any.
 * Return:  0; -ENOENT the address belongs to no symbol.
 * Cost:    a binary search.
 */
int ksyms_at(uintptr_t addr, struct ksym *out);

/* ksyms_text - an address in words, as Linux prints it: "vfs_read+0x4/0x90", with " [reads]"
 * behind it for a symbol of a module, and "[reads]+0x20" for what was of one that has gone.
 * @buf: @size bytes; gets as much as fits, and a NUL
 *
 * Context: any.  Return: the characters in @buf; 0: there is no name.
 */
#define KSYMS_TEXT_LEN 160 /* bytes, for most names */
size_t ksyms_text(char *buf, size_t size, uintptr_t addr);

/* ksyms_gone - the name of the module that was at @addr and is no more; NULL: there was none.
 * @offset: gets how far it is into that
 *
 * Context: any.
 */
const char *ksyms_gone(uintptr_t addr, size_t *offset);

/* ksyms_count, ksyms_get - all symbols: those of the image, by address, then what was loaded.
 * ksyms_count() is how many are the image's.
 *
 * Context: any.  Return: true with @out filled; false: there are no more.
 */
size_t ksyms_count(void);
bool ksyms_get(size_t i, struct ksym *out);

/* ksyms_base_name - the name without what compilers append to parts and copies of a
 * function: .isra.N, .constprop.N, .part.N, .cold, and combinations.
 * @buf:  gets as much of the base name as fits, and a NUL
 * @size: of @buf in bytes; with 0 nothing is written
 *
 * Context: any.
 * Return:  the length of the base name; @size or more means cut short.
 */
size_t ksyms_base_name(const char *name, char *buf, size_t size);
