/* params.h - finds the names and types of parameters of functions, from debug data.
 *
 * A list that is found stays for ever; see kernel/debug/gen_params.py and
 * kernel/module/params.py.
 * A type is a word: u8..u64, s8..s64, x64 for a pointer, string for a pointer to characters.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct param {
    const char *name; /* @name_len bytes */
    size_t name_len;
    const char *type; /* @type_len bytes */
    size_t type_len;
};

/* params_get - get parameter @i, from 0, of the function at @addr. Only parameters that
 * the caller passes in registers are known.
 * Context: any.  Return: false: there is none, or nothing is known of the function.
 */
bool params_get(uintptr_t addr, unsigned i, struct param *out);

/* params_return - get the type that the function at @addr returns; it may be "void".
 * @len: gets the length of the type
 * Context: any.  Return: NULL: nothing is known of the function.
 */
const char *params_return(uintptr_t addr, size_t *len);
