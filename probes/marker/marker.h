/* marker.h - switches markers on and off. kernel/debug/marker.h explains markers. */
#pragma once

#include "kernel/debug/marker.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MARKER_NAME_MAX 64 /* bytes, NUL included; a format may have twice as many */

/* marker_connect - let each marker with the name @name call @fn. These are the markers of
 * the image and of all modules, also of modules that are loaded later.
 * @format:  must be equal to the format of these markers. There may be no marker of that
 *           name yet
 * @private: is passed to @fn. @fn may be connected several times, with different values
 *
 * On return every CPU that comes to these markers calls @fn. A CPU never calls @fn with
 * arguments of another format.
 *
 * Context: thread.  Locks: takes PLAT_PROBES; waits for quiescence.
 * Return:  0; -EDEADLK the caller is a handler of a probe, or this CPU is running a
 *          marker's function; -EINVAL a marker of that name, or a function that is
 *          connected to the name, has another format, or @name is empty, or @name or
 *          @format is too long; -EEXIST @fn is connected already with @private; -ENOMEM;
 *          the errno of a refusal by xmc_batch().
 */
int marker_connect(const char *name, const char *format, marker_fn fn, void *private);

/* marker_disconnect - undo one marker_connect(), with the same @name, @fn and @private.
 * On return no CPU is in @fn for this connection, and no CPU comes there any more.
 * Context, Locks: as marker_connect().
 * Return:  0; -EDEADLK as marker_connect(); -ENOENT @fn is not connected with @private.
 */
int marker_disconnect(const char *name, marker_fn fn, void *private);

/* One of several functions to connect or to disconnect. */
struct marker_wish {
    const char *name, *format;
    marker_fn fn;
    void *private;
};

/* marker_connect_all - connect all @count functions, or none of them. All places change
 * in one batch, so many functions cost as much time as one.
 * marker_disconnect_all - disconnect all @count functions in the same way, or none of
 * them. The formats in @wishes are not used.
 * Context, Locks: as marker_connect().
 * Return: as marker_connect() or marker_disconnect(); the errno is that of the first
 *         function that is refused.
 */
int marker_connect_all(const struct marker_wish *wishes, size_t count);
int marker_disconnect_all(const struct marker_wish *wishes, size_t count);

/* One line of the list of markers: a MARK() in the source of the image or of a module. */
struct marker_facts {
    const char *name, *format;
    const char *module; /* NULL: the image */
    size_t places;      /* in the text: the compiler may copy a MARK() */
    size_t functions;   /* that the marker calls */
    uint64_t missed;    /* how often it called no function: see marker_fn */
};

/* marker_for_each - call @fn for each marker. @fn must not connect or disconnect
 * functions. Context: thread.  Locks: takes the markers' lock.
 */
void marker_for_each(void (*fn)(const struct marker_facts *m, void *arg), void *arg);

/* The markers of one text: of the image, or of one module. */
struct marker_part {
    struct marker_part *next;
    const char *module;
    uintptr_t memory, memory_end; /* all memory of the module, data included */
    struct marker_site *sites;
    const struct marker_insn *insns;
    size_t site_count, insn_count;
};

/* marker_comes - new text with the markers of @part has been loaded, and no CPU executes
 * it yet: switch on the markers that have functions connected to their names. @part must
 * exist until marker_goes().
 * marker_leaves - the text is about to be unloaded: markers stop calling functions that
 * lie in the memory of @part.
 * marker_goes - the text is being unloaded, and no thread is in it: forget @part.
 * Context, Locks: as marker_connect().
 * Return:  0; -EINVAL a marker has another format than a function that is connected to
 *          its name: this marker stays off, all other markers are on; -ENOMEM, or the
 *          errno of a refusal by xmc_batch(): all markers of @part are off.
 */
int marker_comes(struct marker_part *part);
void marker_leaves(const struct marker_part *part);
void marker_goes(struct marker_part *part);

/* marker_set_watch - set the function that is called when markers come and go.
 * @watch: gets the markers of the image at once, and the markers of a module before any CPU
 *         executes the module (@come), and when it is being unloaded
 * Context: boot. @watch runs in `thread`.
 */
typedef void (*marker_watch_fn)(const struct marker_site *sites, size_t count, bool come);
void marker_set_watch(marker_watch_fn watch);
/* marker_exists - is there a marker with this name and format? Context: thread. */
bool marker_exists(const char *name, const char *format);

/* marker_init - find the image's markers. Context: boot, after probes_init().
 * marker_add_command - add the console's `marker`, and the file that lists all markers.
 * Context: boot, after marker_init().
 * Return: 0; an errno of vfs_add_tree() or shell_add_command().
 */
void marker_init(void);
int marker_add_command(void);
