XMC := \
    probes/xmc/xmc.c
