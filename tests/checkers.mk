# checkers.mk - programs of the host that read real code, and what QEMU loads.

# The decoder beside Zydis and objdump. Optimised: it sees millions of instructions.
INSN_CHECK := $(patsubst %.c,$(B)/libinsn/%.o,$(wildcard tests/insn/*.c))
$(B)/insn/check_zydis: $(INSN_CHECK) $(B)/host/libinsn.a
	$(call say,HOSTLD,$@)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) -o $@ $^ -lZydis
-include $(INSN_CHECK:.o=.d)

# The planner of jumps, at every instruction of real programs.
PUN_CHECK := $(patsubst %.c,$(B)/libinsn/%.o,$(wildcard tests/pun/*.c) $(PUN) \
    $(filter probes/jump/pad%,$(JUMP)))
$(B)/pun/check_pun: $(PUN_CHECK) $(B)/host/libinsn.a
	$(call say,HOSTLD,$@)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) -o $@ $^
-include $(PUN_CHECK:.o=.d)

# The rules of regions, at every instruction of the kernel's file.
REGION_CHECK := $(patsubst %.c,$(B)/libinsn/%.o,tests/region/check_region.c \
    tests/region/port_elf.c \
    $(addprefix probes/region/,region.c region_copy.c targets.c) \
    $(addprefix probes/core/,check.c rules.c blacklist.c boundary.c emulate.c recover.c \
    reject.c))
$(B)/region/check_region: $(REGION_CHECK) $(B)/host/libinsn.a
	$(call say,HOSTLD,$@)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) -o $@ $^
-include $(REGION_CHECK:.o=.d)

# The decoder under libFuzzer, which only clang has.
# The languages of the tracer under it. Our C library gets names of its own, as in tests/unit.
$(B)/fuzz/obj/libc/%.o: private FUZZ_RENAME := -include tests/unit/libc_rename.h
$(B)/fuzz/obj/%.o: %.c $(B)/flags.stamp
	@mkdir -p $(@D)
	$(Q)clang $(C_COMMON) -O1 $(SANITIZE) -fsanitize=fuzzer-no-link $(FUZZ_RENAME) -MMD -MP \
	    -c -o $@ $<

FUZZ_TRACE = $(patsubst %.c,$(B)/fuzz/obj/%.o,tests/fuzz/fuzz_trace.c $(trace_language))
$(B)/fuzz/fuzz_trace: $(FUZZ_TRACE)
	$(call say,HOSTLD,$@)
	$(Q)clang $(SANITIZE) -fsanitize=fuzzer -o $@ $^
-include $(FUZZ_TRACE:.o=.d)

# Programs of gdb under it.
FUZZ_AGENT = $(patsubst %.c,$(B)/fuzz/obj/%.o,tests/fuzz/fuzz_agent.c $(AGENT))
$(B)/fuzz/fuzz_agent: $(FUZZ_AGENT)
	$(call say,HOSTLD,$@)
	$(Q)clang $(SANITIZE) -fsanitize=fuzzer -o $@ $^
-include $(FUZZ_AGENT:.o=.d)

# What arrives at the kernel's own stub for gdb.
FUZZ_GDB = $(patsubst %.c,$(B)/fuzz/obj/%.o,tests/fuzz/fuzz_gdb.c probes/gdb/gdb_packet.c)
$(B)/fuzz/fuzz_gdb: $(FUZZ_GDB)
	$(call say,HOSTLD,$@)
	$(Q)clang $(SANITIZE) -fsanitize=fuzzer -o $@ $^
-include $(FUZZ_GDB:.o=.d)

# The checker of modules under it.
FUZZ_MODULE = $(patsubst %.c,$(B)/fuzz/obj/%.o,tests/fuzz/fuzz_module.c \
    kernel/module/elf_check.c kernel/module/elf_link.c)
$(B)/fuzz/fuzz_module: $(FUZZ_MODULE)
	$(call say,HOSTLD,$@)
	$(Q)clang $(SANITIZE) -fsanitize=fuzzer -o $@ $^
-include $(FUZZ_MODULE:.o=.d)

$(B)/fuzz/fuzz_insn: tests/fuzz/fuzz_insn.c $(INSN) $(wildcard probes/insn/*.h) \
    $(B)/flags.stamp
	$(call say,HOSTCC,$@)
	@mkdir -p $(@D)
	$(Q)clang $(C_COMMON) -O1 $(SANITIZE) -fsanitize=fuzzer -o $@ $(filter %.c,$^)

# A plugin for QEMU, which counts what the guest executes, and what gdbserver preloads.
SHARED := $(B)/truth/exec_count.so $(B)/suite/whole_xstate.so
$(B)/truth/exec_count.so: tests/truth/exec_count.c
$(B)/suite/whole_xstate.so: tests/gdb/suite/whole_xstate.c
$(SHARED): $(B)/flags.stamp
	$(call say,HOSTCC,$@)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) $(C_COMMON) -O2 -fPIC -fvisibility=hidden -shared -o $@ \
	    $(filter %.c,$^)
