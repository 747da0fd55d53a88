# explore.mk - builds the explorer of interleavings: one program for each scenario
# tests/explore/explore_STEM.c, which contains the files of the kernel that it tests.

EXPLORE_STEMS := $(sort $(patsubst tests/explore/explore_%.c,%,$(wildcard tests/explore/explore_*.c)))

explore_ring := probes/trace/ring/ring.c probes/trace/ring/page.c
explore_ring_reset := $(explore_ring)
explore_module := kernel/module/module.c kernel/module/symbols.c libc/string.c
explore_attach := tests/explore/one_event.c $(addprefix probes/trace/live/,live_attach.c live_program.c) \
    $(filter probes/trace/language/%,$(TRACE)) $(AGENT) $(filter-out libc/err.c libc/qsort.c,$(LIBC))
explore_hist_clear := $(explore_attach)
explore_program_in_c := $(explore_attach)
explore_watch_set := $(explore_attach) probes/trace/live/live_watch.c
explore_arm := probes/trace/live/live_switch.c
explore_gdb_stop := probes/gdb/gdb_stop.c tests/explore/two_stops.c
explore_gdb_late := $(explore_gdb_stop)
explore_gdb_step := $(explore_gdb_stop) probes/gdb/gdb_step.c
explore_gdb_lock := $(explore_gdb_stop) kernel/sync/spinlock.c
explore_kprobe := tests/explore/text.c $(filter-out tests/unit/test_%,$(unit_extend_none))
explore_text_poke := $(explore_kprobe)
explore_programs := tests/explore/text.c $(engine_on_arrays)
explore_marker := probes/marker/marker.c kernel/debug/marker.c libc/string.c
explore_shadow := $(addprefix probes/returns/,shadow.c holder.c)
explore_debug_reg := kernel/cpu/debug_reg.c libc/string.c

# The compiler calls a function before each access to memory: seen.c has these functions.
EXPLORE_CFLAGS := -Itests/explore/fake $(C_COMMON) -O1 -fno-pie -fcf-protection=none
EXPLORE_SEEN := -fsanitize=thread --param tsan-distinguish-volatile=1 \
    --param tsan-instrument-func-entry-exit=0 -Wno-tsan -Wno-dangling-else -include tests/explore/code.h
EXPLORE_WRAP := $(addprefix -Wl$(,)--wrap=,memcpy memset $(addprefix plat_,text_write text_read \
    sync_cores quiesce this_cpu irq_save irq_restore alloc free))

$(B)/explore/%.o: %.c $(B)/flags.stamp
	$(call say,HOSTCC,$<)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) $(EXPLORE_CFLAGS) $(EXPLORE_SEEN) -MMD -MP -c -o $@ $<
$(B)/explore/libc/%.o: private EXPLORE_CFLAGS += -include tests/unit/libc_rename.h
$(B)/explore/tests/explore/search.o $(B)/explore/tests/explore/seen.o: EXPLORE_SEEN := -O2

define explore_program
explore_objs_$(1) := $(patsubst %.c,$(B)/explore/%.o,tests/explore/explore_$(1).c \
    tests/explore/search.c tests/explore/seen.c tests/explore/machine.c $(explore_$(1)))
$(B)/tests/explore/$(1): $$(explore_objs_$(1)) tests/explore/explore.mk
	@mkdir -p $$(@D)
	$$(Q)$$(HOSTCC) -no-pie -Wl,--unresolved-symbols=ignore-in-object-files $$(EXPLORE_WRAP) -o $$@ $$(explore_objs_$(1))
EXPLORE_OBJS += $$(explore_objs_$(1))
endef
EXPLORE_OBJS :=
$(foreach stem,$(EXPLORE_STEMS),$(eval $(call explore_program,$(stem))))
-include $(sort $(EXPLORE_OBJS:.o=.d))

explore: $(patsubst %,$(B)/tests/explore/%,$(or $(T),$(EXPLORE_STEMS))) ## orders of steps; T=STEM, LONG=1
	$(Q)$(if $(LONG),LONG=1) prove --exec '' $^

.PHONY: explore
