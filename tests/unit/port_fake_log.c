/* port_fake_log.c - port_fake's log: it says in words what happens to the text. */
#include "probes/core/registry.h"
#include "tests/unit/port_fake.h"
#include "tests/unit/port_fake_parts.h"

static char words[1 << 16];
static size_t words_len;
static uintptr_t watched;
static const struct site *watched_site;

static void word_add(const char *word)
{
    size_t left = sizeof(words) - words_len;

    if (strlen(word) + 2 <= left)
        words_len +=
            (size_t)sprintf(words + words_len, "%s%s", words_len ? " " : "", word);
}

static void watch(void)
{
    const struct site *site;

    if (!watched)
        return;
    site = registry_find(watched);
    if (!site == !watched_site)
        return;
    if (site)
        watched_site = site;
    word_add(site ? "found" : "lost");
    if (!site)
        watched = 0;
}

void fake_note(const char *word)
{
    watch();
    word_add(word);
}

/* fake_note_free - note that @p is freed. @p is only compared, because it may be freed
 * already.
 */
void fake_note_free(const void *p)
{
    watch();
    if (!p || p != watched_site)
        return;
    word_add("free");
    watched_site = NULL;
}

void fake_log_start(uintptr_t watch_addr)
{
    words[0] = '\0';
    words_len = 0;
    watched = watch_addr;
    watched_site = registry_find(watch_addr);
}

const char *fake_log(void)
{
    watch();
    return words;
}
