AGENT := \
    probes/agent/agent_op.c \
    probes/agent/agent_verify.c \
    probes/agent/agent_format.c \
    probes/agent/agent.c
