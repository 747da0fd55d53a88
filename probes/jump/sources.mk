JUMP := \
    probes/jump/extend.c \
    probes/jump/detour.c \
    probes/jump/detour_own.c \
    probes/jump/handler.c \
    probes/jump/liveness.c \
    probes/jump/jump.c \
    probes/jump/pun.c \
    probes/jump/pun_text.c \
    probes/jump/pun_shot.c \
    probes/jump/pun_place.c \
    probes/jump/pun_joint.c \
    probes/jump/optimize.c \
    probes/jump/optimize_batch.c \
    probes/jump/optimize_plan.c \
    probes/jump/optimize_write.c \
    probes/jump/optimize_region.c \
    probes/jump/unoptimize.c \
    probes/jump/leftover.c \
    probes/jump/link.c \
    probes/jump/pad.c \
    probes/jump/pad_page.c \
    probes/jump/pad_frame.c \
    probes/jump/pad_write.c \
    probes/jump/detour.asm \
    probes/jump/detour_own.asm \
    probes/jump/detour_light.asm \
    probes/jump/detour_return.asm
