CORE := \
    probes/core/reject.c \
    probes/core/state.c \
    probes/core/register.c \
    probes/core/site_list.c \
    probes/core/enable.c \
    probes/core/rules.c \
    probes/core/check.c \
    probes/core/blacklist.c \
    probes/core/boundary.c \
    probes/core/registry.c \
    probes/core/aggr.c \
    probes/core/prepare.c \
    probes/core/arm.c \
    probes/core/copy.c \
    probes/core/hit.c \
    probes/core/account.c \
    probes/core/boost.c \
    probes/core/step.c \
    probes/core/emulate.c \
    probes/core/fault.c \
    probes/core/reclaim.c \
    probes/core/insn_slot.c \
    probes/core/text_poke.c \
    probes/core/text_batch.c \
    probes/core/recover.c
