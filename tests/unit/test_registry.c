/* test_registry.c - tests of the registry, which finds the site of an address: how it
 * grows, places of removed sites (graves), and the cache of a CPU.
 */
#include "probes/core/cache.h"
#include "probes/core/registry.h"
#include "tests/unit/port_fake.h"

#define TEXT_AT UINT64_C(0xffffffff80200000)

/* sites_make - make @count sites, with distances as between instructions. */
static struct site *sites_make(size_t count)
{
    struct site *sites = calloc(count, sizeof(*sites));
    uintptr_t addr = TEXT_AT;

    if (!sites)
        abort();
    for (size_t i = 0; i < count; i++) {
        sites[i].addr = addr;
        addr += 1 + unit_random() % 7;
    }
    return sites;
}

static void insert_all(struct site *sites, size_t count)
{
    for (size_t i = 0; i < count; i++)
        CHECK_EQ(registry_insert(&sites[i]), 0);
}

static void remove_all(struct site *sites, size_t count)
{
    for (size_t i = 0; i < count; i++)
        registry_remove(&sites[i]);
    registry_exit();
    free(sites);
}

static bool all_found(struct site *sites, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (registry_find(sites[i].addr) != &sites[i])
            return false;
    return true;
}

UNIT_TEST(nothing_is_found_in_nothing)
{
    CHECK(registry_find(TEXT_AT) == NULL);
    CHECK_EQ(registry_bytes(), 0);
    registry_exit();
}

UNIT_TEST(from_one_to_100000_all_are_found)
{
    static const size_t counts[] = { 1, 2, 127, 128, 129, 1000, 37222, 100000 };

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct site *sites;

        fake_start();
        sites = sites_make(counts[i]);
        insert_all(sites, counts[i]);
        CHECK_EQ(registry_count(), counts[i]);
        CHECK(all_found(sites, counts[i]));
        remove_all(sites, counts[i]);
        fake_end();
    }
}

UNIT_TEST(the_table_stays_in_proportion)
{
    struct site *sites = sites_make(100000);

    for (size_t i = 0; i < 100000; i++) {
        CHECK_EQ(registry_insert(&sites[i]), 0);
        if (i >= 1000)
            CHECK(registry_bytes() <= (i + 1) * 25 / 2);
    }
    remove_all(sites, 100000);
}

UNIT_TEST(what_was_removed_hides_nothing_behind_it)
{
    struct site *sites = sites_make(5000);

    insert_all(sites, 5000);
    for (size_t i = 0; i < 5000; i += 2)
        registry_remove(&sites[i]);
    for (size_t i = 0; i < 5000; i++)
        CHECK(registry_find(sites[i].addr) == (i % 2 ? &sites[i] : NULL));
    CHECK_EQ(registry_count(), 2500);
    for (size_t i = 0; i < 5000; i += 2)
        CHECK_EQ(registry_insert(&sites[i]), 0);
    CHECK(all_found(sites, 5000));
    remove_all(sites, 5000);
}

#define MODEL_COUNT 3000

UNIT_TEST(same_answers_as_an_array_of_booleans)
{
    static bool in[MODEL_COUNT];
    struct site *sites = sites_make(MODEL_COUNT);

    for (size_t round = 0; round < 100000; round++) {
        size_t i = unit_random() % MODEL_COUNT;

        if (in[i])
            registry_remove(&sites[i]);
        else
            CHECK_EQ(registry_insert(&sites[i]), 0);
        in[i] = !in[i];
        i = unit_random() % MODEL_COUNT;
        CHECK(registry_find(sites[i].addr) == (in[i] ? &sites[i] : NULL));
    }
    for (size_t i = 0; i < MODEL_COUNT; i++) {
        if (in[i])
            registry_remove(&sites[i]);
    }
    registry_exit();
    free(sites);
}

UNIT_TEST(the_old_table_is_freed_after_a_synchronisation)
{
    struct site *sites = sites_make(2000);
    size_t bytes;

    for (size_t i = 0; i < 2000; i++) {
        unsigned syncs = fake.syncs;

        bytes = registry_bytes();
        CHECK_EQ(registry_insert(&sites[i]), 0);
        CHECK_EQ(fake.syncs - syncs, bytes && registry_bytes() != bytes);
        CHECK_EQ(fake.blocks, 1);
    }
    remove_all(sites, 2000);
}

static unsigned visits;

static void visit(struct site *site, void *arg)
{
    CHECK(arg == &visits);
    CHECK_EQ(site->len, 0);
    site->len++;
    visits++;
}

UNIT_TEST(for_each_visits_each_once_and_no_grave)
{
    struct site *sites = sites_make(700);

    insert_all(sites, 700);
    for (size_t i = 600; i < 700; i++)
        registry_remove(&sites[i]);
    visits = 0;
    registry_for_each(visit, &visits);
    CHECK_EQ(visits, 600);
    remove_all(sites, 600);
}

/* ---- marks ---- */

static bool visit_marked(struct site *site, void *arg)
{
    visit(site, arg);
    return site->class;
}

/* marked - visit the marked sites. Sites of class 0 lose their marks by that.
 * Return: the number of sites that were visited.
 */
static unsigned marked(struct site *sites, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sites[i].len = 0;
    visits = 0;
    registry_for_each_marked(visit_marked, &visits);
    return visits;
}

UNIT_TEST(only_marked_sites_are_visited)
{
    struct site *sites = sites_make(700);

    registry_mark(&sites[0]); /* there is no table yet */
    insert_all(sites, 700);
    CHECK_EQ(marked(sites, 700), 0);
    for (size_t i = 0; i < 700; i += 70) {
        sites[i].class = 1;
        registry_mark(&sites[i]);
    }
    CHECK_EQ(marked(sites, 700), 10);
    for (size_t i = 0; i < 700; i++)
        CHECK_EQ(sites[i].len, i % 70 == 0);
    sites[70].class = 0;
    CHECK_EQ(marked(sites, 700), 10); /* sites[70] loses its mark here */
    CHECK_EQ(marked(sites, 700), 9);
    registry_remove(&sites[140]);
    CHECK_EQ(marked(sites, 700), 8);
    registry_mark(&sites[140]);
    CHECK_EQ(marked(sites, 700), 8);
    CHECK_EQ(registry_insert(&sites[140]), 0);
    CHECK_EQ(marked(sites, 700), 8);
    remove_all(sites, 700);
}

UNIT_TEST(a_mark_outlives_the_table_and_the_site)
{
    struct site *sites = sites_make(2000), successor;

    for (size_t i = 0; i < 2000; i++) {
        sites[i].class = i % 100 == 0;
        CHECK_EQ(registry_insert(&sites[i]), 0);
        if (sites[i].class)
            registry_mark(&sites[i]);
    }
    CHECK_EQ(marked(sites, 2000), 20);
    successor = sites[0];
    registry_replace(&sites[0], &successor);
    successor.len = 0;
    CHECK_EQ(marked(sites, 2000), 20);
    CHECK_EQ(successor.len, 1);
    registry_replace(&successor, &sites[0]);
    remove_all(sites, 2000);
}

/* ---- the cache ---- */

static struct site *find_cached(struct probe_cpu *cpu, uintptr_t addr)
{
    struct site *site;

    return cache_find(cpu, addr, probe_in_nmi(cpu), &site) ? site : NULL;
}

UNIT_TEST(a_second_hit_comes_from_the_cache)
{
    struct probe_cpu *cpu = plat_probe_cpu(0);
    struct site *sites = sites_make(2);

    insert_all(sites, 2);
    for (int i = 0; i < 10; i++)
        CHECK(find_cached(cpu, sites[0].addr) == &sites[0]);
    CHECK_EQ(cpu->cache_misses, 1);
    remove_all(sites, 2);
}

UNIT_TEST(no_cpu_remembers_a_removed_site)
{
    struct site *sites, successor;

    fake.cpus = FAKE_CPUS;
    sites = sites_make(1);
    successor = sites[0];
    insert_all(sites, 1);
    for (unsigned i = 0; i < FAKE_CPUS; i++)
        CHECK(find_cached(plat_probe_cpu(i), sites[0].addr) == &sites[0]);
    registry_remove(&sites[0]);
    for (unsigned i = 0; i < FAKE_CPUS; i++)
        CHECK(find_cached(plat_probe_cpu(i), sites[0].addr) == NULL);
    CHECK_EQ(registry_insert(&successor), 0);
    for (unsigned i = 0; i < FAKE_CPUS; i++)
        CHECK(find_cached(plat_probe_cpu(i), sites[0].addr) == &successor);
    registry_remove(&successor);
    registry_exit();
    free(sites);
}

UNIT_TEST(addresses_that_share_a_place_in_the_cache_are_kept_apart)
{
    struct probe_cpu *cpu = plat_probe_cpu(0);
    struct site *sites = sites_make(10 * PROBE_CACHE_LEN);

    insert_all(sites, 10 * PROBE_CACHE_LEN);
    for (size_t round = 0; round < 20000; round++) {
        struct site *site = &sites[unit_random() % (10 * PROBE_CACHE_LEN)];

        CHECK(find_cached(cpu, site->addr) == site);
    }
    CHECK(cpu->cache_misses > PROBE_CACHE_LEN);
    CHECK(cpu->cache_misses < 20000);
    remove_all(sites, 10 * PROBE_CACHE_LEN);
}

UNIT_TEST(an_nmi_leaves_the_cache_alone)
{
    struct probe_cpu *cpu = plat_probe_cpu(0);
    struct probe_cpu before;
    struct site *sites = sites_make(1);

    insert_all(sites, 1);
    before = *cpu;
    FAKE_DEPTHS.nmi = 1;
    CHECK(find_cached(cpu, sites[0].addr) == &sites[0]);
    CHECK_EQ(cpu->cache_misses, before.cache_misses);
    for (size_t i = 0; i < PROBE_CACHE_LEN; i++)
        CHECK(cpu->cache[i].site == NULL);
    remove_all(sites, 1);
}

/* The NMI has come between the two stores that update an entry of the cache. So the entry
 * has the address of one site, and the pointer to another one.
 */
UNIT_TEST(an_nmi_does_not_ask_the_cache)
{
    struct probe_cpu *cpu = plat_probe_cpu(0);
    size_t at;
    struct site *sites = sites_make(2);

    insert_all(sites, 2);
    at = cache_index(sites[0].addr);
    cpu->cache[at].addr = sites[0].addr;
    cpu->cache[at].site = &sites[1];
    FAKE_DEPTHS.nmi = true;
    CHECK(find_cached(cpu, sites[0].addr) == &sites[0]);
    FAKE_DEPTHS.nmi = false;
    remove_all(sites, 2);
}

UNIT_TESTS_BETWEEN(fake_start, fake_end)
