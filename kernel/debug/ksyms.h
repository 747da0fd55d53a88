/* ksyms.h - finds symbols, of functions and data, by name or by address: symbols of the
 * image and of loaded code.
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
                    * symbols, t d b r of local symbols */
    const char *module; /* NULL: the symbol belongs to the image */
    const char *params; /* of a module's function: see params.h; NULL: not known here */
};

/* ksyms_more - a socket: the functions for symbols of loaded code, which come
 * after the symbols of the image.
 * @at, @next, @get: as ksyms_at(), ksyms_next() with an @iter of its own, ksyms_get() from 0
 * @gone: as ksyms_gone()
 *
 * The names that the functions return stay valid for ever.
 * Set at boot. The functions run in any context.
 */
struct ksyms_more {
    int (*at)(uintptr_t addr, struct ksym *out);
    bool (*next)(const char *name, size_t *iter, struct ksym *out);
    bool (*get)(size_t i, struct ksym *out);
    const char *(*gone)(uintptr_t addr, size_t *offset);
};
extern const struct ksyms_more *ksyms_more;

/* ksyms_withdraw - forget the symbols of the image in [@start, @end). Symbols that begin
 * at @start stay: other text or data ends there.
 * Context: thread. A list that is made meanwhile may lack a symbol, or repeat one.
 */
void ksyms_withdraw(uintptr_t start, uintptr_t end);

/* ksyms_find - find the symbol @name. The image's has precedence over those of modules.
 * Context: any.
 * Return:  0; -ENOENT no such symbol; -EADDRNOTAVAIL several, ksyms_next() lists them.
 */
int ksyms_find(const char *name, struct ksym *out);

/* ksyms_next - find the next of the symbols @name, in order of addresses.
 * @iter: 0 before the first call; private afterwards
 *
 * Context: any.
 * Return:  true with @out filled, false when there is no further one.
 */
bool ksyms_next(const char *name, size_t *iter, struct ksym *out);

/* ksyms_at - find the symbol that @addr belongs to.
 *
 * If several symbols contain the address, the result is the innermost symbol with a size
 * of its own. Padding between functions belongs to no symbol. To a label without a size
 * belongs all memory up to the next symbol.
 *
 * Context: any.
 * Return:  0; -ENOENT the address belongs to no symbol.
 * Cost:    a binary search.
 */
int ksyms_at(uintptr_t addr, struct ksym *out);

/* ksyms_is_of - is @sym a symbol of the module whose name has the @len bytes at @module?
 * Context: any.
 */
bool ksyms_is_of(const struct ksym *sym, const char *module, size_t len);

/* ksyms_text - write an address as text, as Linux prints it: "vfs_read+0x4/0x90"; in a
 * module with " [reads]" behind that; in a module that has gone "[reads]+0x20".
 * @buf: @size bytes; gets as much as fits, and a NUL
 *
 * Context: any.  Return: the characters in @buf; 0: there is no name.
 */
#define KSYMS_TEXT_LEN 160 /* bytes, for most names */
size_t ksyms_text(char *buf, size_t size, uintptr_t addr);

/* ksyms_gone - get the name of the module that was at @addr and has gone; NULL: no
 * module.
 * @offset: gets the offset of @addr in the module
 *
 * Context: any.
 */
const char *ksyms_gone(uintptr_t addr, size_t *offset);

/* ksyms_count - get how many symbols the image has.
 * ksyms_get - get symbol @i of all symbols: first the symbols of the image, by address,
 * then the symbols of loaded code.
 * Context: any.  Return: true with @out filled; false: there are no more.
 */
size_t ksyms_count(void);
bool ksyms_get(size_t i, struct ksym *out);

/* ksyms_base_name - get the name without the suffixes that compilers append to parts and
 * copies of a function: .isra.N, .constprop.N, .part.N, .cold, and combinations.
 * @buf:  gets as much of the base name as fits, and a NUL
 * @size: of @buf in bytes; with 0 nothing is written
 *
 * Context: any.
 * Return:  the length of the base name; @size or more means cut short.
 */
size_t ksyms_base_name(const char *name, char *buf, size_t size);
