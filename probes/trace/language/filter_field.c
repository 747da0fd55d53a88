/* filter_field.c - finds the fields of records by their names, and reads their values. */
#include "probes/trace/language/filter.h"

#include "kernel/base/compiler.h"

#include <string.h>

#define HEAD_LEN 8 /* bytes of the fields that all records have */

/* The fields that all events have. */
static const struct filter_field generic[] = {
    { "CPU", 0, 4, true, FILTER_CPU },
    { "cpu", 0, 4, true, FILTER_CPU },
    { "common_cpu", 0, 4, true, FILTER_CPU },
    { "COMM", 0, 8, false, FILTER_COMM },
    { "comm", 0, 8, false, FILTER_COMM },
    { "common_type", 0, 2, false, FILTER_NUMBER },
    { "common_flags", 2, 1, false, FILTER_NUMBER },
    { "common_preempt_count", 3, 1, false, FILTER_NUMBER },
    { "common_pid", 4, 4, true, FILTER_NUMBER },
};

size_t filter_fields(const struct def *def, struct filter_field *fields)
{
    static const struct filter_field entry = { "__probe_ip", HEAD_LEN, 8, false,
                                               FILTER_NUMBER };
    static const struct filter_field ret[] = {
        { "__probe_func", HEAD_LEN, 8, false, FILTER_NUMBER },
        { "__probe_ret_ip", HEAD_LEN + 8, 8, false, FILTER_NUMBER },
    };
    size_t count = 0, head;

    if (def->is_synth) {
        count = 0;
    } else if (def->is_return) {
        fields[count++] = ret[0];
        fields[count++] = ret[1];
    } else {
        fields[count++] = entry;
    }
    head = HEAD_LEN + 8 * count;
    for (unsigned i = 0; i < def->arg_count; i++) {
        const struct fetch_arg *arg = &def->args[i];

        fields[count++] = (struct filter_field){
            .name = arg->name,
            .offset = (uint16_t)(head + arg->offset),
            .size = (uint16_t)fetch_fixed_size(arg),
            .is_signed = arg->type->kind == FETCH_SIGNED,
            .kind = arg->type->kind == FETCH_STRING ? FILTER_STRING : FILTER_NUMBER,
        };
    }
    return count;
}

static const struct filter_field *field_of_name(const struct filter_field *fields,
                                                size_t count, const char *name,
                                                size_t len)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(fields[i].name) == len && !memcmp(fields[i].name, name, len))
            return &fields[i];
    return NULL;
}

const struct filter_field *filter_field_find(const struct filter_field *fields,
                                             size_t count, const char *name, size_t len)
{
    const struct filter_field *field = field_of_name(fields, count, name, len);

    return field ? field : field_of_name(generic, ARRAY_LEN(generic), name, len);
}

uint64_t filter_field_number(const struct filter_field *field, const void *record,
                             unsigned cpu)
{
    size_t size = field->size < 8 ? field->size : 8;
    unsigned unused = 64 - 8 * (unsigned)size;
    uint64_t value = 0;

    if (field->kind == FILTER_CPU)
        return cpu;
    memcpy(&value, (const uint8_t *)record + field->offset, size);
    if (!field->is_signed || !size)
        return value;
    return (uint64_t)((int64_t)(value << unused) >> unused);
}

const char *filter_field_string(const struct filter_field *field, const void *record,
                                size_t len, const char *comm, size_t *size)
{
    const char *bytes = record;
    uint32_t place;

    switch (field->kind) {
    case FILTER_COMM:
        *size = strlen(comm);
        return comm;
    case FILTER_CHARS:
        *size = field->size;
        return bytes + field->offset;
    default:
        memcpy(&place, bytes + field->offset, sizeof(place));
        *size = place >> 16;
        if ((place & 0xffff) + *size > len)
            *size = 0;
        return bytes + (place & 0xffff);
    }
}
