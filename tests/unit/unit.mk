# unit.mk - builds code that needs no kernel under ASan and UBSan: one program for each
# file tests/unit/test_STEM.c.

# unit_STEM: the sources that test_STEM.c needs.
port_fake := $(addprefix tests/unit/port_fake,.c _text.c _known.c _memory.c _cpu.c _log.c) \
    tests/unit/symbol_list.c
engine_on_arrays := $(ENGINE) $(port_fake) tests/unit/port_fake_rooms.c \
    tests/unit/port_fake_pads.c tests/unit/fake_shadow.c
unit_extend_none := $(filter %.c,$(INSN) $(CORE)) tests/alone/extend_none.c $(port_fake) \
    tests/unit/port_fake_none.c
engine_stems := aggr boundary check counter detour detour_specialized emulate enable explain fault \
    handler hit insn_slot jprobe jump jump_stage kretprobe link near optimize pad prepare reclaim recover \
    region region_copy region_open region_picture region_watch register register_set registry \
    return_point state step targets text_history text_part text_phases \
    text_poke xmc
$(foreach stem,$(engine_stems),$(eval unit_$(stem) := $(engine_on_arrays)))

$(foreach stem,insn relocate encode builder effects operand,$(eval unit_$(stem) := $(INSN)))

unit_agent := $(AGENT)
unit_agent_verify := $(AGENT)
unit_agent_format := $(AGENT)
unit_watch := $(engine_on_arrays) $(WATCH) tests/unit/fake_watch.c
unit_pun := $(PUN) $(INSN)
unit_program_verify := $(engine_on_arrays)
unit_program_code := $(engine_on_arrays)
unit_program_line := probes/console/program_line.c \
    probes/trace/language/fetch_type.c libc/strtol.c libc/extra.c libc/string.c \
    $(engine_on_arrays)
unit_page := probes/trace/ring/page.c
unit_print := $(addprefix probes/trace/ring/,ring.c page.c page_merge.c print.c format.c) \
    $(addprefix probes/trace/language/,event.c \
    fetch_type.c symbol_text.c) libc/strtol.c libc/extra.c libc/string.c
unit_trace_graph := probes/console/trace_graph.c $(unit_print)
unit_ring := probes/trace/ring/ring.c probes/trace/ring/page.c
trace_language := $(filter-out %/event.c,$(filter probes/trace/language/%,$(TRACE))) $(filter-out libc/err.c libc/qsort.c,$(LIBC)) $(AGENT) \
    tests/unit/trace_host.c
$(foreach stem,def def_mark error fetch filter hist trigger,$(eval unit_$(stem) := $(trace_language)))
unit_compile := $(trace_language) $(engine_on_arrays)
unit_reject := probes/core/reject.c
unit_rules := probes/core/rules.c probes/core/reject.c
unit_boot_info := boot/boot_info.c boot/boot_map.c boot/boot_option.c
unit_ctype :=
unit_elf_check := kernel/module/elf_check.c kernel/module/elf_link.c tests/unit/small_object.c
unit_elf_link := $(unit_elf_check)
unit_err := libc/err.c
unit_extable := kernel/mm/extable.c
unit_free_set := kernel/mm/free_set.c
unit_gdb_packet := probes/gdb/gdb_packet.c
unit_glob := libc/glob.c
unit_heap_core := kernel/mm/heap_core.c
unit_inlines := kernel/debug/inlines.c
unit_lines := kernel/debug/lines.c
unit_params := kernel/debug/params.c
unit_ksyms := kernel/debug/ksyms.c
unit_qsort := libc/qsort.c
unit_seq := kernel/fs/seq.c tests/unit/fake_kernel.c
unit_shell := $(filter-out %/shell_system.c %/shell_beside.c, \
    $(filter kernel/console/%,$(CONSOLE))) \
    $(filter kernel/fs/vfs%,$(FS)) kernel/fs/seq.c libc/err.c \
    tests/unit/fake_kernel.c
unit_shell_line := kernel/console/shell_line.c kernel/console/shell_history.c $(unit_seq)
unit_shell_machine := kernel/console/shell_machine.c libc/err.c $(unit_seq)
unit_shell_parse := kernel/console/shell_parse.c
unit_shell_text := kernel/console/shell_text.c $(unit_seq)
unit_string := libc/string.c
unit_strtol := libc/strtol.c
unit_vfs := kernel/fs/vfs.c kernel/fs/vfs_node.c kernel/fs/vfs_tree.c kernel/fs/seq.c \
    tests/unit/fake_kernel.c
unit_vsnprintf := libc/vsnprintf.c libc/snprintf.c libc/strtol.c libc/string.c

# ---- how they are built ----------------------------------------------------------------

UNIT_STEMS := $(sort $(patsubst tests/unit/test_%.c,%,$(wildcard tests/unit/test_*.c)))

# Host objects are compiled with sanitizers. The functions of our C library get other
# names there, because the host's C library is in the same program.
$(B)/host/libc/%.o: private HOST_CFLAGS += -include tests/unit/libc_rename.h
$(B)/host/%.o: %.c $(B)/flags.stamp
	$(call say,HOSTCC,$<)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) $(HOST_CFLAGS) -MMD -MP -c -o $@ $<

# make itself writes this file: the lists are too long for an argument of a program.
$(B)/unit.stamp: FORCE
	@$(shell mkdir -p $(@D))$(file >$@.new,$(foreach stem,$(UNIT_STEMS),$(stem): $(unit_$(stem))))
	@cmp -s $@.new $@ || cp $@.new $@

define unit_program
unit_objs_$(1) := $(patsubst %.c,$(B)/host/%.o,tests/unit/test_$(1).c tests/unit/unit.c \
    $(unit_$(1)))
$(B)/unit/test_$(1): $$(unit_objs_$(1)) $(B)/unit.stamp
	@mkdir -p $$(@D)
	$$(Q)$$(HOSTCC) $$(SANITIZE) -o $$@ $$(unit_objs_$(1))
UNIT_OBJS += $$(unit_objs_$(1))
endef
UNIT_OBJS :=
$(foreach stem,$(UNIT_STEMS),$(eval $(call unit_program,$(stem))))
-include $(sort $(UNIT_OBJS:.o=.d))

unit: $(patsubst %,$(B)/unit/test_%,$(or $(T),$(UNIT_STEMS))) ## host tests; T=STEM for one
	$(Q)prove --exec '' $^

.PHONY: unit
