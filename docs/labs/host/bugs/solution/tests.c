/* tests.c - tests that the tracer does what tracer.h promises, also in extreme cases. */
#include "rig.h"
#include "tracer.h"

#include <stdio.h>
#include <string.h>

#define ALPHA 0x1000
#define BETA 0xffffffff81002000

static char listed[4096];

static bool list_is(const char *lines)
{
    tracer_list(listed, sizeof(listed));
    return !strcmp(listed, lines);
}

static long put(const char *text, bool clear)
{
    struct writer *w = tracer_open(clear);
    long result = tracer_write(w, text, strlen(text));

    return tracer_close(w) ? -1 : result;
}

static void places(void)
{
    check(put("p alpha\np beta+0x10\nr 0xffffffff81002000\n# p nothing\n\np 4096", true) >
              0,
          "lines of each kind");
    check(list_is("p alpha hits=0\np beta+0x10 hits=0\nr 0xffffffff81002000 hits=0\n"
                  "p 4096 hits=0\n"),
          "are listed in their order");
    rig_hit(ALPHA);
    rig_hit(BETA);
    rig_hit(BETA + 16);
    check(list_is("p alpha hits=1\np beta+0x10 hits=1\nr 0xffffffff81002000 hits=1\n"
                  "p 4096 hits=1\n"),
          "each counts hits of its own place");
}

static void refusals(void)
{
    check(put("p alpha\nq alpha\np beta\n", true) == -1, "no such kind");
    check(list_is("p alpha hits=0\n"), "what is in front of it holds");
    check(put("p 0x1001\n", true) == -1 && put("p nothing\n", true) == -1,
          "no such place");
    check(put("p alpha+\n", true) == -1 && put("p\n", true) == -1, "half of a line");
    check(put("p alpha beta\n", true) == -1, "a word too much");
    check(put("p alpha beta alpha beta\n", true) == -1, "more of them");
    check(put("p nothing", true) == -1, "a wrong line without an end");
}

/* A place may fill the whole line. */
static void long_places(void)
{
    char line[TRACER_LINE_MAX + 2], lines[TRACER_LINE_MAX + 20];

    memset(line, '0', TRACER_LINE_MAX);
    memcpy(line, "p alpha+0x", 10);
    memcpy(line + TRACER_LINE_MAX - 2, "10\n", 4);
    snprintf(lines, sizeof(lines), "%.*s hits=1\n", TRACER_LINE_MAX, line);
    put(line, true);
    rig_hit(ALPHA + 16);
    check(list_is(lines), "a place of 125 characters");
    put("p 9000\n", true);
    rig_hit(9000);
    check(list_is("p 9000 hits=1\n"), "a place in decimal");
    put("p alpha+020\np 010010\n", true);
    rig_hit(ALPHA + 16);
    rig_hit(ALPHA + 8);
    check(list_is("p alpha+020 hits=1\np 010010 hits=1\n"), "places in octal");
    put("p alpha+0x100000000\n", true);
    rig_hit(ALPHA + 0x100000000);
    check(list_is("p alpha+0x100000000 hits=1\n"), "an offset above four gigabytes");
}

static void short_lists(void)
{
    static const char whole[] = "p alpha hits=0\nr beta hits=0\n";
    char out[sizeof(whole) + 1];

    put("p alpha\nr beta\n", true);
    for (size_t size = 0; size <= sizeof(whole); size++) {
        memset(out, 'x', sizeof(out));
        check(tracer_list(out, size) == strlen(whole), "the number of all characters");
        check(out[size] == 'x' &&
                  (!size || (memchr(out, 0, size) && !strncmp(out, whole, strlen(out)))),
              "no more than the size is written");
    }
}

/* Write a line of @chars characters, in pieces of @piece bytes. */
static long long_line(size_t chars, size_t piece)
{
    struct writer *w = tracer_open(true);
    char text[256];
    long result = 0;

    memset(text, ' ', sizeof(text));
    memcpy(text, "p alpha", 7);
    text[chars] = '\n';
    for (size_t at = 0; at <= chars && result >= 0; at += piece)
        result =
            tracer_write(w, text + at, at + piece <= chars + 1 ? piece : chars + 1 - at);
    tracer_close(w);
    return result;
}

static void edges(void)
{
    for (size_t piece = 1; piece <= 256; piece = piece * 3 + 1) {
        check(long_line(127, piece) > 0 && list_is("p alpha hits=0\n"), "127 characters");
        check(long_line(128, piece) == -1 && list_is(""), "128 are too many");
        check(long_line(129, piece) == -1 && list_is(""), "129 are too many");
    }
}

static void behind_an_edge(void)
{
    struct writer *w = tracer_open(true);
    char text[TRACER_LINE_MAX + 1];

    memset(text, 'p', sizeof(text));
    check(tracer_write(w, text, sizeof(text)) == -1, "a line that is too long");
    check(tracer_write(w, "p alpha\n", 8) == 8, "and then another one");
    check(!tracer_close(w) && list_is("p alpha hits=0\n"), "which has its probe");
}

static void two_writers(void)
{
    struct writer *one = tracer_open(true), *two = tracer_open(false);

    tracer_write(one, "p al", 4);
    tracer_write(two, "r be", 4);
    tracer_write(one, "pha", 3);
    tracer_write(two, "ta", 2);
    check(!tracer_close(two) && !tracer_close(one), "two writers, each with its line");
    check(list_is("r beta hits=0\np alpha hits=0\n"), "have a probe each");
}

static void behind_a_wrong_line(void)
{
    struct writer *w = tracer_open(true);
    char text[TRACER_LINE_MAX + 20];

    check(tracer_write(w, "q alpha\n", 8) == -1, "a wrong line");
    check(tracer_write(w, "p beta\n", 7) == 7, "and then another one, which is right");
    check(!tracer_close(w) && list_is("p beta hits=0\n"), "which has its probe");
    memset(text, 'p', TRACER_LINE_MAX + 1);
    strcpy(text + TRACER_LINE_MAX + 1, "\np alpha\n");
    check(put(text, true) == -1 && list_is(""), "the rest behind a line is ignored");
}

static void capitals(void)
{
    put("p 0X2000\np 0x2Ab0\n", true);
    rig_hit(0x2ab0);
    check(list_is("p 0X2000 hits=0\np 0x2Ab0 hits=1\n"), "places with capitals");
}

static void without_clearing(void)
{
    put("p alpha\n", true);
    put("p beta\n", false);
    check(list_is("p alpha hits=0\np beta hits=0\n"), "a writer that does not clear");
}

static void pieces(void)
{
    static const char text[] = "p alpha\nr beta\np alpha+0x20\np beta+8\n";
    char many[800] = "";

    for (size_t piece = 1; piece < sizeof(text); piece++) {
        struct writer *w = tracer_open(true);

        for (size_t at = 0; at < sizeof(text) - 1; at += piece)
            tracer_write(w, text + at,
                         at + piece < sizeof(text) ? piece : sizeof(text) - 1 - at);
        check(!tracer_close(w), "a file in pieces");
        check(list_is("p alpha hits=0\nr beta hits=0\np alpha+0x20 hits=0\n"
                      "p beta+8 hits=0\n"),
              "is the file");
    }
    two_writers();
    for (unsigned i = 0; i < 40; i++)
        strcat(many, "p alpha+0x1230\n");
    check(put(many, true) == (long)strlen(many), "many lines at once");
    tracer_list(listed, sizeof(listed));
    check(strlen(listed) == 40 * strlen("p alpha+0x1230 hits=0\n"), "are all there");
}

static void add_beta(void)
{
    put("p beta\n", false);
}

static void another_writer(const char *before)
{
    put(before, true);
    rig_other_writer(add_beta);
    tracer_close(tracer_open(true));
    check(list_is(""), "a probe that is just being added goes as well");
    rig_other_writer(NULL);
    tracer_close(tracer_open(true));
}

static void clear_again(void)
{
    tracer_close(tracer_open(true));
}

/* Both the list and a new probe wait for the mutex, which another writer has. */
static void others_meanwhile(void)
{
    put("p alpha\n", true);
    rig_other_writer(clear_again);
    check(list_is(""), "a list waits until another writer has cleared");
    rig_other_writer(add_beta);
    put("p alpha\n", false);
    check(list_is("p beta hits=0\np alpha hits=0\n"), "two that add at a time");
    rig_other_writer(NULL);
    clear_again();
}

static void clear_when_it_waits(void)
{
    rig_other_writer(clear_again);
}

/* The second writer that clears comes when the first one leaves the mutex, and takes it. */
static void two_that_clear(void)
{
    put("p alpha\nr beta\n", true);
    rig_other_writer(clear_when_it_waits);
    clear_again();
    check(list_is(""), "two that clear at a time");
    rig_other_writer(NULL);
}

static void hits_that_have_begun(const char *lines)
{
    put(lines, true);
    rig_hit_begins(ALPHA);
    tracer_close(tracer_open(true));
    rig_hit_ends();
    rig_hit(ALPHA);
    check(list_is(""), "probes go under a hit");
}

void run_tests(void)
{
    places();
    refusals();
    long_places();
    short_lists();
    edges();
    behind_an_edge();
    behind_a_wrong_line();
    capitals();
    without_clearing();
    pieces();
    another_writer("");
    another_writer("p alpha\n");
    two_that_clear();
    others_meanwhile();
    hits_that_have_begun("p alpha\n");
    hits_that_have_begun("p alpha\nr alpha\n");
    check(rig_allocated() == 0, "all memory is freed");
}
