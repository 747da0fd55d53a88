XMC := \
    probes/xmc/xmc.c probes/xmc/xmc_rules.c
