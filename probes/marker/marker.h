/* marker.h - markers are switched on and off: kernel/debug/marker.h has what they are. */
#pragma once

#include "kernel/debug/marker.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MARKER_NAME_MAX 64 /* bytes, the NUL included; of formats twice as many */

/* marker_connect - have @fn called by each marker @name, of the image and of modules,
 * those that are loaded later included.
 * @format:  that of the markers, to the letter. A marker of that name may come later
 * @private: for @fn, which may be connected several times with different ones
 *
 * On return every CPU that comes to the markers calls @fn. A CPU calls it with arguments of
 * this format, or not at all.
 *
 * Context: thread.  Locks: takes PLAT_PROBES; waits for quiescence.
 * Return:  0; -EDEADLK from a handler of a probe, or while this CPU runs a marker's function;
 *          -EINVAL a marker of that name, or a function that waits for it, has another
 *          format, or name or format is too long; -EEXIST it is connected; -ENOMEM; what
 *          xmc_batch() says of an instruction.
 */
int marker_connect(const char *name, const char *format, marker_fn fn, void *private);

/* marker_disconnect - undo it. On return no CPU is in @fn for it, nor comes there.
 * Context, Locks: as marker_connect().
 * Return:  0; -EDEADLK as marker_connect(); -ENOENT it is not connected.
 */
int marker_disconnect(const char *name, marker_fn fn, void *private);

/* One function of several. */
struct marker_wish {
    const char *name, *format;
    marker_fn fn;
    void *private;
};

/* marker_connect_all - all @count of them, or none, in one batch: the cost is that of one.
 * marker_disconnect_all - the same; their formats are not asked.
 * Context, Locks: as marker_connect().
 * Return: as marker_connect(), marker_disconnect(), of the first that is refused.
 */
int marker_connect_all(const struct marker_wish *wishes, size_t count);
int marker_disconnect_all(const struct marker_wish *wishes, size_t count);

/* A name of the list: the markers of one name and format, of the image or one module. */
struct marker_facts {
    const char *name, *format;
    const char *module; /* NULL: the image */
    size_t places;      /* in the text */
    size_t functions;   /* that are called */
    uint64_t missed;
};

/* marker_for_each - of every marker. Locks: takes that of markers: @fn must not switch one.
 * Context: thread.
 */
void marker_for_each(void (*fn)(const struct marker_facts *m, void *arg), void *arg);

/* Where the markers of one text are. */
struct marker_part {
    struct marker_part *next;
    const char *module;
    uintptr_t memory, memory_end; /* of the module, data included */
    struct marker_site *sites;
    const struct marker_insn *insns;
    size_t site_count, insn_count;
};

/* marker_comes - new text with the markers of @part has been loaded, and no CPU executes
 * it yet: switch on those markers whose names are connected. @part must exist until
 * marker_goes().
 * marker_leaves - the text is about to be unloaded: markers stop calling functions that
 * lie in the memory of @part.
 * marker_goes - the text is being unloaded, and no thread is in it: forget @part.
 * Context, Locks: as marker_connect().
 * Return:  0; -EINVAL a marker's format differs from that of the function connected to
 *          its name: this marker stays off, the others are on; -ENOMEM, or the errno of a
 *          refusal by xmc_batch(): all markers of @part are off.
 */
int marker_comes(struct marker_part *part);
void marker_leaves(const struct marker_part *part);
void marker_goes(struct marker_part *part);

/* marker_set_watch - a socket.
 * @came: hears of the markers of each text, those of the image at once, those of a module
 *        before any CPU executes it
 * @went: of those that go with their module
 * Context: boot; @came, @went: thread.
 */
typedef void (*marker_watch_fn)(const struct marker_site *sites, size_t count);
void marker_set_watch(marker_watch_fn came, marker_watch_fn went);
/* marker_exists - is there a marker of that name? Context: thread. */
bool marker_exists(const char *name);

/* marker_init - find the image's markers. Context: boot, behind probes_init().
 * marker_add_command - the console's `marker`, and the file that lists all markers.
 * Context: boot, behind marker_init().  Return: 0; what adding a command or a file says.
 */
void marker_init(void);
int marker_add_command(void);
