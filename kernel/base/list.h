/* list.h - doubly linked list, embedded in its elements. Pure; no locking of its own. */
#pragma once

#include "kernel/base/compiler.h"

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *next, *prev;
};

#define LIST_INIT(name)                                                                  \
    {                                                                                    \
        &(name), &(name)                                                                 \
    }

static inline void list_init(struct list *l)
{
    l->next = l;
    l->prev = l;
}

static inline bool list_empty(const struct list *head)
{
    return head->next == head;
}

static inline void list_insert(struct list *at, struct list *node)
{
    node->next = at->next;
    node->prev = at;
    at->next->prev = node;
    at->next = node;
}

static inline void list_append(struct list *head, struct list *node)
{
    list_insert(head->prev, node);
}

/* list_remove - take @node out of its list. @node is an empty list then, so a second call
 * does nothing.
 */
static inline void list_remove(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

#define list_entry(node, type, member) CONTAINER_OF(node, type, member)
#define list_first(head, type, member) list_entry((head)->next, type, member)

#define list_for_each(pos, head, member)                                                 \
    for (pos = list_entry((head)->next, __typeof__(*pos), member);                       \
         &pos->member != (head);                                                         \
         pos = list_entry(pos->member.next, __typeof__(*pos), member))

/* As list_for_each, but the body may remove @pos from the list. */
#define list_for_each_safe(pos, tmp, head, member)                                       \
    for (pos = list_entry((head)->next, __typeof__(*pos), member),                       \
        tmp = list_entry(pos->member.next, __typeof__(*pos), member);                    \
         &pos->member != (head);                                                         \
         pos = tmp, tmp = list_entry(tmp->member.next, __typeof__(*tmp), member))
