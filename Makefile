# Makefile - builds the kernel, its boot image and the host tests.
#
#   make help      lists the targets
#   make V=1       shows the commands
#   make B=dir     builds somewhere else than in build/
#   make EXTRA_OBJS="a.o b.o"   links further objects into the kernel
#
#   CROSS_COMPILE=x86_64-elf-    another gcc      EXTRA_OBJS="a.o b.o"    linked in too
#   CC=clang                     or clang
#
# Sources are listed by hand, in the order in which they are best read.

B ?= build
CROSS_COMPILE ?= x86_64-linux-gnu-
ifeq ($(origin CC),default)
CC := $(CROSS_COMPILE)gcc
endif
ifeq ($(origin LD),default)
LD := $(CROSS_COMPILE)ld
endif
NM := $(CROSS_COMPILE)nm
OBJCOPY := $(CROSS_COMPILE)objcopy
OBJDUMP := $(CROSS_COMPILE)objdump
NASM ?= nasm
HOSTCC ?= gcc
HOSTAR ?= ar
PYTHON ?= python3
GRUB_MKRESCUE ?= grub-mkrescue

Q := $(if $(filter 1,$(V)),,@)
silent := $(findstring s,$(firstword -$(MAKEFLAGS)))
say = @$(if $(filter 1,$(V))$(silent),true,printf '  %-7s %s\n' $(1) $(2))

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: FORCE

# ---- sources ---------------------------------------------------------------------------

KERNEL := \
    kernel/main.c

CPU := \
    kernel/cpu/entry.asm \
    kernel/cpu/trap.c \
    kernel/cpu/gdt.asm \
    kernel/cpu/features.c \
    kernel/cpu/memory_types.c \
    kernel/cpu/percpu.c \
    kernel/cpu/percpu_counters.c \
    kernel/cpu/lapic.c \
    kernel/cpu/ioapic.c \
    kernel/cpu/smp.c \
    kernel/cpu/smp_start.c

MM := \
    kernel/mm/free_set.c \
    kernel/mm/frame.c \
    kernel/mm/paging.c \
    kernel/mm/paging_change.c \
    kernel/mm/paging_init.c \
    kernel/mm/area.c \
    kernel/mm/vmap.c \
    kernel/mm/stack.c \
    kernel/mm/exec.c \
    kernel/mm/exec_frame.c \
    kernel/mm/exec_poke.c \
    kernel/mm/heap_core.c \
    kernel/mm/heap.c \
    kernel/mm/extable.c \
    kernel/mm/copy_nofault.asm

SYNC := \
    kernel/sync/held.c \
    kernel/sync/spinlock.c \
    kernel/sync/mutex.c \
    kernel/sync/wait.c \
    kernel/sync/quiesce.c \
    kernel/sync/stop_machine.c

THREAD := \
    kernel/thread/thread.c \
    kernel/thread/sched.c \
    kernel/thread/switch.asm

TIME := \
    kernel/time/clock.c

FS := \
    kernel/fs/vfs.c \
    kernel/fs/vfs_node.c \
    kernel/fs/vfs_tree.c \
    kernel/fs/seq.c \
    kernel/fs/proc.c \
    kernel/fs/proc_cpu.c

DEBUG := \
    kernel/debug/log.c \
    kernel/debug/panic.c \
    kernel/debug/backtrace.c \
    kernel/debug/ksyms.c \
    kernel/debug/inlines.c

CONSOLE := \
    kernel/console/shell.c \
    kernel/console/shell_run.c \
    kernel/console/shell_output.c \
    kernel/console/shell_table.c \
    kernel/console/shell_files.c \
    kernel/console/shell_filters.c \
    kernel/console/shell_system.c \
    kernel/console/shell_power.c \
    kernel/console/shell_parse.c \
    kernel/console/shell_machine.c \
    kernel/console/shell_line.c \
    kernel/console/shell_history.c \
    kernel/console/shell_complete.c \
    kernel/console/shell_text.c

WORK := \
    kernel/work/work.c \
    kernel/work/work_threads.c \
    kernel/work/work_files.c \
    kernel/work/work_memory.c \
    kernel/work/work_text.c \
    kernel/work/work_compute.c \
    kernel/work/work_machine.c \
    kernel/work/work_special.c

PROBES := \
    probes/reject.c \
    probes/state.c \
    probes/register.c \
    probes/site_list.c \
    probes/enable.c \
    probes/check.c \
    probes/blacklist.c \
    probes/boundary.c \
    probes/registry.c \
    probes/aggr.c \
    probes/prepare.c \
    probes/arm.c \
    probes/copy.c \
    probes/detour.c \
    probes/detour_own.c \
    probes/handler.c \
    probes/liveness.c \
    probes/counter.c \
    probes/hit.c \
    probes/jump.c \
    probes/account.c \
    probes/boost.c \
    probes/step.c \
    probes/emulate.c \
    probes/fault.c \
    probes/jprobe.c \
    probes/shadow.c \
    probes/holder.c \
    probes/return_point.c \
    probes/kretprobe.c \
    probes/kretprobe_register.c \
    probes/pun.c \
    probes/pun_text.c \
    probes/pun_shot.c \
    probes/pun_place.c \
    probes/pun_joint.c \
    probes/optimize.c \
    probes/optimize_batch.c \
    probes/optimize_plan.c \
    probes/optimize_write.c \
    probes/optimize_region.c \
    probes/unoptimize.c \
    probes/leftover.c \
    probes/link.c \
    probes/reclaim.c \
    probes/set.c \
    probes/xmc.c \
    probes/region.c \
    probes/region_copy.c \
    probes/region_open.c \
    probes/region_watch.c \
    probes/region_picture.c \
    probes/explain.c \
    probes/explain_text.c \
    probes/explain_jump.c

PROBES_TEXT := \
    probes/text/insn_slot.c \
    probes/text/pad.c \
    probes/text/pad_page.c \
    probes/text/pad_frame.c \
    probes/text/pad_write.c \
    probes/text/text_poke.c \
    probes/text/text_batch.c \
    probes/text/text_history.c \
    probes/text/targets.c \
    probes/recover.c

PROBES_INSN := \
    probes/insn/insn.c \
    probes/insn/insn_opcode.c \
    probes/insn/insn_kinds.c \
    probes/insn/opcode_map.c \
    probes/insn/opcode_set.c \
    probes/insn/opcode_group.c \
    probes/insn/opcode_ops.c \
    probes/insn/operand.c \
    probes/insn/effects.c \
    probes/insn/relocate.c \
    probes/insn/encode.c

PROBES_PORT := \
    probes/port/detour.asm \
    probes/port/detour_own.asm \
    probes/port/detour_light.asm \
    probes/port/port_detour.c \
    probes/port/port_kernel.c \
    probes/port/port_text.c \
    probes/port/port_pads.c \
    probes/port/port_symbols.c \
    probes/port/port_shadow.c \
    probes/port/detour_return.asm \
    probes/port/kretprobe_trampoline.asm \
    probes/port/jprobe_call.asm \
    probes/port/port_optimizer.c \
    probes/port/report.c \
    probes/port/place.c \
    probes/port/walk.c \
    probes/port/census.c \
    probes/port/mass.c \
    probes/port/console_probe.c \
    probes/port/commands.c \
    probes/port/commands_all.c \
    probes/port/commands_list.c \
    probes/port/commands_stat.c \
    probes/port/commands_explain.c \
    probes/port/commands_text.c \
    probes/port/commands_cost.c \
    probes/port/commands_region.c \
    probes/port/commands_xmc.c \
    probes/port/files.c \
    probes/port/bench.c \
    probes/port/bench_goal.c \
    probes/port/bench_hit.c \
    probes/port/bench_kind.c \
    probes/port/bench_crowd.c \
    probes/port/bench_scale.c \
    probes/port/bench_cache.c \
    probes/port/bench_counted.c \
    probes/port/bench_starve.c

DRIVERS := \
    drivers/serial.c \
    drivers/vga_text.c \
    drivers/debugcon.c \
    drivers/pic.c \
    drivers/pit.c \
    drivers/acpi.c \
    drivers/acpi_madt.c \
    drivers/power.c \
    drivers/fw_cfg.c

LIBC := \
    libc/string.c \
    libc/ctype.c \
    libc/strtol.c \
    libc/glob.c \
    libc/qsort.c \
    libc/vsnprintf.c \
    libc/snprintf.c \
    libc/err.c

BOOT := \
    boot/multiboot2_header.asm \
    boot/start.asm \
    boot/cpu_check.asm \
    boot/ap_start.asm \
    boot/boot_info.c \
    boot/boot_map.c \
    boot/boot_option.c

KTESTS := \
    tests/kernel/ktest.c \
    tests/kernel/test_kprobe.c \
    tests/kernel/test_kretprobe.c \
    tests/kernel/test_jprobe.c \
    tests/kernel/return_targets.asm \
    tests/kernel/return_targets.c \
    tests/kernel/test_return_point.c \
    tests/kernel/test_returns.c \
    tests/kernel/test_detour_return.c \
    tests/kernel/test_fault.c \
    tests/kernel/test_nmi.c \
    tests/kernel/test_everywhere.c \
    tests/kernel/test_set.c \
    tests/kernel/test_misuse.c \
    tests/kernel/test_files.c \
    tests/kernel/say.c \
    tests/kernel/test_commands.c \
    tests/kernel/test_explain.c \
    tests/kernel/test_arming.c \
    tests/kernel/test_link.c \
    tests/kernel/link_targets.asm \
    tests/kernel/test_optimize.c \
    tests/kernel/test_preempt.c \
    tests/kernel/text_sum.c \
    tests/kernel/test_text_poke.c \
    tests/kernel/test_xmc.c \
    tests/kernel/poke_targets.c \
    tests/kernel/poke_targets.asm \
    tests/kernel/test_stack.c \
    tests/kernel/test_places.c \
    tests/kernel/test_slots.c \
    tests/kernel/test_pad.c \
    tests/kernel/test_pun.c \
    tests/kernel/test_handlers.c \
    tests/kernel/test_contain.c \
    tests/kernel/ways.c \
    tests/kernel/way_targets.asm \
    tests/kernel/test_context.c \
    tests/kernel/context_targets.asm \
    tests/kernel/test_nesting.c \
    tests/kernel/test_detour.c \
    tests/kernel/test_light.c \
    tests/kernel/test_jump.c \
    tests/kernel/by_hand.c \
    tests/kernel/detour_targets.asm \
    tests/kernel/logged.c \
    tests/kernel/each_cpu.c \
    tests/kernel/hits.c \
    tests/kernel/jumps.c \
    tests/kernel/nmi_send.c \
    tests/kernel/own_steps.c \
    tests/kernel/share.c \
    tests/kernel/sleepers.c \
    tests/kernel/test_vfs.c \
    tests/kernel/test_work.c \
    tests/kernel/test_shell.c \
    tests/kernel/test_backtrace.c \
    tests/kernel/test_frame.c \
    tests/kernel/test_paging.c \
    tests/kernel/test_exec.c \
    tests/kernel/test_heap.c \
    tests/kernel/test_extable.c \
    tests/kernel/test_clock.c \
    tests/kernel/test_mutex.c \
    tests/kernel/test_thread.c \
    tests/kernel/switch_check.asm \
    tests/kernel/test_smp.c \
    tests/kernel/test_quiesce.c \
    tests/kernel/test_halt.c \
    tests/kernel/test_region.c \
    tests/kernel/region_targets.asm \
    tests/kernel/test_stop_machine.c

BENCH := \
    tests/bench/targets.asm

CONFORMANCE := \
    tests/conformance/enter.asm \
    tests/conformance/fixture.c \
    tests/conformance/vectors.c \
    tests/conformance/processor.c \
    tests/conformance/vary.c \
    tests/conformance/outcome.c \
    tests/conformance/copy.c \
    tests/conformance/pass.c \
    tests/conformance/tier.c \
    tests/conformance/refusal.c \
    tests/conformance/integer.asm \
    tests/conformance/address.asm \
    tests/conformance/stack.asm \
    tests/conformance/branch.asm \
    tests/conformance/system.asm \
    tests/conformance/vector.asm \
    tests/conformance/page.asm \
    tests/conformance/refused.asm \
    tests/conformance/test_fixtures.c \
    tests/conformance/test_page.c \
    tests/conformance/test_refused.c \
    tests/conformance/test_image.c \
    tests/conformance/test_table.c

STRESS := \
    tests/stress/stress.c \
    tests/stress/targets.asm \
    tests/stress/targets.c \
    tests/stress/misbehave.c \
    tests/stress/slots.c \
    tests/stress/crowd.c

TRUTH := \
    tests/truth/truth.c \
    tests/truth/truth_window.c \
    tests/truth/truth_nmi.c

SOURCES := $(KERNEL) $(CPU) $(MM) $(SYNC) $(THREAD) $(TIME) $(FS) $(DEBUG) $(CONSOLE) $(WORK) \
    $(PROBES) $(PROBES_TEXT) $(PROBES_INSN) $(PROBES_PORT) $(DRIVERS) $(LIBC) $(BOOT) \
    $(KTESTS) $(CONFORMANCE) $(BENCH) $(STRESS) $(TRUTH)
OBJS := $(SOURCES:%=$(B)/%.o)

# What each host test needs besides itself.
engine_on_arrays := $(PROBES) $(PROBES_TEXT) $(PROBES_INSN) tests/unit/port_fake.c \
    tests/unit/port_fake_pads.c tests/unit/fake_shadow.c
$(foreach stem,aggr boundary check counter detour detour_own emulate enable explain fault handler hit insn_slot \
    jprobe jump kretprobe link liveness optimize pad recover region \
    register registry return_point set \
    state step targets text_history text_poke xmc,$(eval unit_$(stem) := $(engine_on_arrays)))
$(foreach stem,insn relocate encode effects operand,$(eval unit_$(stem) := $(PROBES_INSN)))
PUN := $(filter probes/pun%,$(PROBES))
unit_pun := $(PUN) $(PROBES_INSN)
unit_reject := probes/reject.c
unit_boot_info := boot/boot_info.c boot/boot_map.c boot/boot_option.c
unit_ctype := libc/ctype.c
unit_err := libc/err.c
unit_extable := kernel/mm/extable.c
unit_free_set := kernel/mm/free_set.c
unit_glob := libc/glob.c
unit_heap_core := kernel/mm/heap_core.c
unit_inlines := kernel/debug/inlines.c
unit_ksyms := kernel/debug/ksyms.c
unit_qsort := libc/qsort.c
unit_seq := kernel/fs/seq.c tests/unit/fake_kernel.c
unit_shell := $(filter-out %/shell_system.c,$(filter kernel/console/%,$(CONSOLE))) \
    $(filter kernel/fs/vfs%,$(FS)) kernel/fs/seq.c libc/err.c \
    tests/unit/fake_kernel.c
unit_shell_line := kernel/console/shell_line.c kernel/console/shell_history.c $(unit_seq)
unit_shell_machine := kernel/console/shell_machine.c libc/err.c $(unit_seq)
unit_shell_parse := kernel/console/shell_parse.c
unit_shell_text := kernel/console/shell_text.c $(unit_seq)
unit_string := libc/string.c
unit_strtol := libc/strtol.c libc/ctype.c
unit_vfs := kernel/fs/vfs.c kernel/fs/vfs_node.c kernel/fs/vfs_tree.c kernel/fs/seq.c \
    tests/unit/fake_kernel.c
unit_vsnprintf := libc/vsnprintf.c libc/snprintf.c libc/strtol.c libc/ctype.c libc/string.c

UNIT_STEMS := $(sort $(patsubst tests/unit/test_%.c,%,$(wildcard tests/unit/test_*.c)))

# ---- flags -----------------------------------------------------------------------------

WARNINGS := -Wall -Wextra -Wconversion -Werror
C_COMMON := -std=gnu11 -g -gdwarf-4 -fno-omit-frame-pointer $(WARNINGS) -I.

CFLAGS := $(C_COMMON) -O2 -ffreestanding -fno-pic -fno-pie -fno-stack-protector \
    -fno-asynchronous-unwind-tables -mcmodel=kernel -mno-red-zone -mgeneral-regs-only \
    -fcf-protection=none -fpatchable-function-entry=5 -nostdinc -isystem libc/include
ifneq (,$(findstring clang,$(CC)))
CFLAGS += --target=x86_64-elf -isystem $(shell $(CC) -print-resource-dir)/include
ASM_OFFSETS_FLAGS := -fno-integrated-as
else
CFLAGS += -fno-ipa-ra -fno-ipa-sra -fno-ipa-cp \
    -isystem $(shell $(CC) -print-file-name=include)
endif

NASMFLAGS := -f elf64 -g -F dwarf -Werror -w-reloc-abs-qword -w-reloc-abs-dword -I./ -I$(B)/

LDFLAGS := -nostdlib -no-pie --build-id --orphan-handling=error -z max-page-size=4096 \
    -z noexecstack -T linker.ld

SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all
HOST_CFLAGS := $(C_COMMON) -O1 $(SANITIZE)

# Further objects to link in: make EXTRA_OBJS="a.o b.o"; see docs/api.md. What ./sonde brings
# up to date before it boots keeps those that were given last.
ifeq ($(KEEP_OBJS) $(origin EXTRA_OBJS),1 undefined)
EXTRA_OBJS := $(wildcard $(shell sed -n 3p $(B)/link.stamp 2>/dev/null))
endif

# A change of flags, tools or lists rebuilds what it concerns.
stamp_if_changed = mkdir -p $(@D); printf '%s\n' $(1) | cmp -s - $@ || \
    printf '%s\n' $(1) >$@

$(B)/flags.stamp: FORCE
	@$(call stamp_if_changed,'$(CC) $(CFLAGS)' '$(NASM) $(NASMFLAGS)' \
	    '$(HOSTCC) $(HOST_CFLAGS)' '$(shell $(CC) --version | head -n 1)')

$(B)/link.stamp: FORCE
	@$(call stamp_if_changed,'$(LD) $(LDFLAGS)' '$(OBJS)' '$(EXTRA_OBJS)')

# ---- the kernel ------------------------------------------------------------------------

all: $(B)/sonde.elf $(B)/sonde.iso $(B)/sonde.lst $(B)/sonde.sym compile_commands.json ## the kernel and its boot image (the default)

$(B)/%.c.o: %.c $(B)/flags.stamp
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

# One file has the optimizations that make special copies of functions: so that there are
# symbols like weigh.constprop.0, as in other kernels.
$(B)/kernel/work/work_special.c.o: CFLAGS := $(filter-out -fno-ipa-%,$(CFLAGS))

OFFSETS := kernel/cpu/asm_offsets.c probes/port/probe_offsets.c
NASM_TOOLS := kernel/debug/nasm_dwarf.py kernel/debug/elf64.py

# Two runs: NASM 2.16 forgets the included files in the list that it makes while assembling.
$(B)/%.asm.o: %.asm $(NASM_TOOLS) $(B)/flags.stamp | $(B)/asm_offsets.inc $(B)/probe_offsets.inc
	$(call say,NASM,$<)
	@mkdir -p $(@D)
	$(Q)$(NASM) $(NASMFLAGS) -M -MP -MT $@ $< >$(@:.o=.d)
	$(Q)$(NASM) $(NASMFLAGS) -o $@ $<
	$(Q)$(PYTHON) kernel/debug/nasm_dwarf.py $@

# C layouts for NASM: compiled to assembly, of which only the marked comments count.
define offsets
$(B)/$(notdir $(1:.c=.inc)): $(1) $(B)/flags.stamp
	$$(call say,GEN,$$@)
	@mkdir -p $$(@D)
	$$(Q)$$(CC) $$(CFLAGS) $$(ASM_OFFSETS_FLAGS) -MMD -MP -MT $$@ -MF $$(@:.inc=.d) -S \
	    -o $$(@:.inc=.s) $$<
	$$(Q)sed -n 's/^[[:space:]]*#define \([A-Z0-9_]*\) \$$$$/%define \1 /p' $$(@:.inc=.s) >$$@
endef
$(foreach file,$(OFFSETS),$(eval $(call offsets,$(file))))

-include $(OBJS:.o=.d) $(B)/asm_offsets.d $(B)/probe_offsets.d

# Linked three times, because the symbol table is a part of what it describes; see
# kernel/debug/gen_ksyms.py. In each image the entry NOPs become one before anything is
# read from it. The tables of inlined functions and of branch targets are made of the first,
# the only one of the two that needs debug data and relocations.
KSYMS_TOOLS := kernel/debug/gen_ksyms.py kernel/debug/elf64.py
INLINES_TOOLS := kernel/debug/gen_inlines.py kernel/debug/elf64.py
TARGETS_TOOLS := probes/text/gen_targets.py kernel/debug/gen_ksyms.py kernel/debug/elf64.py \
    $(B)/link/gen_branches
LINK_TOOLS := kernel/debug/entry_nops.py kernel/debug/elf64.py
image_link = $(LD) $(LDFLAGS) $(1) -o $@ $(OBJS) $(EXTRA_OBJS) $(2) && \
    $(PYTHON) kernel/debug/entry_nops.py $@ $(if $(filter 1,$(V)),,>/dev/null)
LINK_NEEDS := $(OBJS) $(EXTRA_OBJS) linker.ld $(LINK_TOOLS) $(B)/link.stamp

$(B)/link/ksyms0.asm: $(KSYMS_TOOLS)
	@mkdir -p $(@D)
	$(Q)$(PYTHON) kernel/debug/gen_ksyms.py --empty -o $@

$(B)/link/ksyms%.asm: $(B)/link/%.elf $(KSYMS_TOOLS)
	$(Q)$(PYTHON) kernel/debug/gen_ksyms.py -o $@ $<

$(B)/link/inlines0.asm: $(INLINES_TOOLS)
	@mkdir -p $(@D)
	$(Q)$(PYTHON) kernel/debug/gen_inlines.py --empty -o $@

$(B)/link/inlines1.asm: $(B)/link/1.elf $(INLINES_TOOLS)
	$(Q)$(PYTHON) kernel/debug/gen_inlines.py -o $@ $<

$(B)/link/targets0.asm: $(TARGETS_TOOLS)
	@mkdir -p $(@D)
	$(Q)$(PYTHON) probes/text/gen_targets.py --empty -o $@

targets_make = $(PYTHON) probes/text/gen_targets.py --branches $(B)/link/gen_branches $(1)
$(B)/link/targets1.asm: $(B)/link/1.elf $(TARGETS_TOOLS)
	$(Q)$(call targets_make,-o $@ $<)

$(B)/link/gen_branches: $(B)/libinsn/probes/text/gen_branches.o $(B)/host/libinsn.a
	$(call say,HOSTLD,$@)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) -o $@ $^

$(B)/link/%.o: $(B)/link/%.asm $(B)/flags.stamp
	$(Q)$(NASM) -f elf64 -o $@ $<

link_tables = $(1:%=$(B)/link/%.o)
LINK1_TABLES := $(call link_tables,ksyms0 inlines0 targets0)
LINK2_TABLES := $(call link_tables,ksyms1 inlines1 targets1)
LINK3_TABLES := $(call link_tables,ksyms2 inlines1 targets1)

$(B)/link/1.elf: $(LINK1_TABLES) $(LINK_NEEDS)
	$(call say,LD,$@)
	$(Q)$(call image_link,--emit-relocs,$(LINK1_TABLES))

$(B)/link/2.elf: $(LINK2_TABLES) $(LINK_NEEDS)
	$(call say,LD,$@)
	$(Q)$(call image_link,--strip-debug,$(LINK2_TABLES))

$(B)/sonde.elf: $(LINK3_TABLES) $(LINK_NEEDS)
	$(call say,LD,$@)
	$(Q)$(call image_link,--emit-relocs -Map=$(B)/sonde.map,$(LINK3_TABLES))
	$(Q)$(PYTHON) kernel/debug/gen_ksyms.py $@ | cmp - $(B)/link/ksyms2.asm
	$(Q)$(call targets_make,$@) | cmp - $(B)/link/targets1.asm

$(B)/sonde.map: $(B)/sonde.elf

$(B)/sonde.lst: $(B)/sonde.elf
	$(call say,LST,$@)
	$(Q)$(OBJDUMP) -d --no-show-raw-insn $< >$@

$(B)/sonde.sym: $(B)/sonde.elf
	$(call say,SYM,$@)
	$(Q)$(NM) -n $< >$@

# GRUB reads every section of what it boots: no debug data, no relocations.
$(B)/sonde.stripped: $(B)/sonde.elf
	$(Q)$(OBJCOPY) --strip-all $< $@

# Boots under BIOS and, where grub-efi-amd64-bin is installed, under UEFI.
$(B)/platforms.stamp: FORCE
	@$(call stamp_if_changed,'$(wildcard /usr/lib/grub/*/moddep.lst)')

$(B)/sonde.iso: $(B)/sonde.stripped iso/grub.cfg $(B)/platforms.stamp
	$(call say,ISO,$@)
	@rm -rf $(B)/iso && mkdir -p $(B)/iso/boot/grub
	$(Q)cp $(B)/sonde.stripped $(B)/iso/boot/sonde.elf
	$(Q)cp iso/grub.cfg $(B)/iso/boot/grub/grub.cfg
	$(Q)$(GRUB_MKRESCUE) $(GRUB_FLAGS) -o $@ $(B)/iso >$(B)/iso.log 2>&1 || \
	    { cat $(B)/iso.log; exit 1; }

# Only what booting needs. GRUB's own start-up asks for every kind of partition table.
GRUB_FLAGS := --locales= --fonts= --themes= --install-modules="multiboot2 normal serial \
    terminal iso9660 part_acorn part_amiga part_apple part_bsd part_dfly part_dvh \
    part_gpt part_msdos part_plan part_sun part_sunpc"

compile_commands.json: $(B)/flags.stamp $(B)/link.stamp
	@{ printf '['; sep=; for f in $(filter %.c,$(SOURCES)); do \
	    printf '%s\n{"directory": "%s", "file": "%s", "command": "%s -c %s"}' "$$sep" \
	    '$(CURDIR)' "$$f" '$(CC) $(CFLAGS)' "$$f"; sep=,; \
	done; printf '\n]\n'; } >$@

# ---- running and testing ---------------------------------------------------------------

run: ## boot it, console on this terminal; installs what is missing
	$(Q)tests/run/need.sh run
	$(Q)./sonde run

gdb: ## boot it stopped at its first instruction, gdb attached
	$(Q)tests/run/need.sh run gdb
	$(Q)./sonde gdb

test: ## everything that should pass before a commit, or T=NAME; installs what is missing
	$(Q)tests/run/need.sh run uefi gdb test
	$(Q)./sonde test $(T)

test-long: ## the same, with more seeds, more CPUs and more time
	$(Q)tests/run/need.sh run uefi gdb test
	$(Q)./sonde test --long

STRESS_OPTIONS := MINUTES SEED CPUS ROUND CLASSES STEPPED
stress: $(B)/sonde.elf ## handlers that misbehave at random: MINUTES=60 SEED=1 CPUS=1,2,4,8
	$(Q)tests/run/need.sh run
	$(Q)$(PYTHON) tests/stress/stress.py $(foreach option,$(STRESS_OPTIONS),$(if \
	    $($(option)),--$(shell echo $(option) | tr A-Z a-z) $($(option))))

test-fresh: ## `make run` and `make test` in a Debian that has only git, make and gcc
	$(Q)tests/run/fresh.sh

# Host objects are under sanitizers. Our C library gets names of its own there: the host's
# stands beside it.
$(B)/host/libc/%.o: private HOST_CFLAGS += -include tests/unit/libc_rename.h
$(B)/host/%.o: %.c $(B)/flags.stamp
	$(call say,HOSTCC,$<)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) $(HOST_CFLAGS) -MMD -MP -c -o $@ $<

# One program per tests/unit/test_STEM.c.
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

# A plugin for QEMU, which counts what the guest executes.
$(B)/truth/exec_count.so: tests/truth/exec_count.c $(B)/flags.stamp
	$(call say,HOSTCC,$<)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) $(C_COMMON) -O2 -fPIC -fvisibility=hidden -shared -o $@ $<

$(B)/unit.stamp: FORCE
	@$(call stamp_if_changed,$(foreach stem,$(UNIT_STEMS),'$(stem): $(unit_$(stem))'))

T ?=
unit: $(patsubst %,$(B)/unit/test_%,$(or $(T),$(UNIT_STEMS))) ## host tests; T=STEM for one
	$(Q)prove --exec '' $^

# The engine in a process: one program per tests/hosted/test_STEM.c and variant. The port and
# the fixtures are never under sanitizers.
HOSTED_VARIANTS := gcc clang asan tsan
HOSTED_STEMS := $(sort $(patsubst tests/hosted/test_%.c,%,$(wildcard tests/hosted/test_*.c)))
HOSTED_ENGINE := $(PROBES) $(PROBES_TEXT) $(PROBES_INSN)
HOSTED_PORT := tests/hosted/port_posix.c tests/hosted/posix_text.c \
    tests/hosted/posix_pads.c tests/hosted/posix_symbols.c tests/hosted/posix_threads.c tests/hosted/posix_trap.c \
    tests/hosted/posix_shadow.c tests/hosted/trampoline.asm tests/hosted/posix_tsan.c \
    tests/hosted/jump_leave.asm probes/port/jprobe_call.asm probes/port/port_detour.c \
    probes/port/detour.asm probes/port/detour_own.asm \
    probes/port/detour_light.asm probes/port/detour_return.asm \
    tests/hosted/signal_return.asm kernel/mm/extable.c kernel/mm/copy_nofault.asm
HOSTED_FIXTURES := tests/hosted/fixtures.c tests/hosted/fixtures.asm \
    tests/hosted/fixture_call.asm
HOSTED_REST := tests/hosted/fixture.c tests/hosted/probe_all.c tests/hosted/poke.c \
    tests/unit/unit.c

# Handlers that a jump has brought find the program's vector registers, and its stack as it
# is aligned just then.
, := ,
HOSTED_CFLAGS := $(C_COMMON) -O2 -fno-pie -mno-red-zone -fcf-protection=none -pthread \
    -mgeneral-regs-only
# In the middle of what a jump reaches from there, and pointers to it fit 31 bits.
HOSTED_LDFLAGS := -no-pie -pthread -T tests/hosted/hosted.ld -Wl,-z,noexecstack \
    -Wl,-Ttext-segment=0x7c000000
# The image of a hit lies on a stack that need not even be aligned to words.
hosted_sanitize_asan := $(SANITIZE) -fno-sanitize=alignment
hosted_sanitize_tsan := -fsanitize=thread --param tsan-distinguish-volatile=1
hosted_port_asan := -DPOSIX_ASAN
hosted_port_tsan := -DPOSIX_TSAN
hosted_ld_asan := $(addprefix -Wl$(,)--wrap=kprobe_,jump_handler image_handler jump_leave \
    post_handler)
hosted_ld_tsan := $(hosted_ld_asan)
hosted_more_asan := tests/hosted/sanitized_calls.asm
hosted_more_tsan := $(hosted_more_asan)

hosted_objs = $(patsubst %,$(B)/hosted/$(1)/%.o,$(2)) # variant, sources

define hosted_variant
hosted_cc_$(1) := $(if $(filter clang,$(1)),clang,$(HOSTCC))
$(call hosted_objs,$(1),$(HOSTED_PORT) $(HOSTED_FIXTURES)): private hosted_sanitize_$(1) :=
$(call hosted_objs,$(1),$(HOSTED_PORT)): private HOSTED_CFLAGS += $(hosted_port_$(1))
$(call hosted_objs,$(1),$(HOSTED_FIXTURES)): private HOSTED_CFLAGS := \
    $(filter-out -mgeneral-regs-only,$(HOSTED_CFLAGS))
$(B)/hosted/$(1)/%.c.o: %.c $(B)/hosted.stamp
	$$(call say,HOSTCC,$$<)
	@mkdir -p $$(@D)
	$$(Q)$$(hosted_cc_$(1)) $$(HOSTED_CFLAGS) $$(hosted_sanitize_$(1)) -MMD -MP -c \
	    -o $$@ $$<
$(B)/hosted/$(1)/%.asm.o: %.asm $(B)/hosted.stamp | $(B)/asm_offsets.inc \
    $(B)/probe_offsets.inc
	@mkdir -p $$(@D)
	$$(Q)$$(NASM) $$(NASMFLAGS) -DHOSTED -MD $$(@:.o=.d) -MP -MT $$@ -o $$@ $$<
$(B)/hosted/$(1)/test_%: $(call hosted_objs,$(1),tests/hosted/test_%.c $(HOSTED_ENGINE) \
    $(HOSTED_PORT) $(hosted_more_$(1)) $(HOSTED_FIXTURES) $(HOSTED_REST)) tests/hosted/hosted.ld
	$$(call say,HOSTLD,$$@)
	$$(Q)$$(hosted_cc_$(1)) $$(HOSTED_LDFLAGS) $$(hosted_sanitize_$(1)) $$(hosted_ld_$(1)) -o $$@ \
	    $$(filter %.o,$$^)
-include $(patsubst %.o,%.d,$(call hosted_objs,$(1),$(HOSTED_ENGINE) $(HOSTED_PORT) \
    $(HOSTED_FIXTURES) $(HOSTED_REST) $(HOSTED_STEMS:%=tests/hosted/test_%.c)))
endef
$(foreach variant,$(HOSTED_VARIANTS),$(eval $(call hosted_variant,$(variant))))

BENCH_NATIVE := tests/hosted/bench_native.c tests/hosted/bench_targets.asm \
    tests/hosted/fixture.c
$(call hosted_objs,gcc,tests/hosted/bench_native.c): private HOSTED_CFLAGS := \
    $(filter-out -mgeneral-regs-only,$(HOSTED_CFLAGS))
$(B)/hosted/gcc/bench_native: $(call hosted_objs,gcc,$(BENCH_NATIVE) $(HOSTED_ENGINE) \
    $(HOSTED_PORT) $(HOSTED_FIXTURES)) tests/hosted/hosted.ld
	$(call say,HOSTLD,$@)
	$(Q)$(HOSTCC) $(HOSTED_LDFLAGS) -o $@ $(filter %.o,$^)
-include $(patsubst %.o,%.d,$(call hosted_objs,gcc,$(BENCH_NATIVE)))

bench-native: $(B)/hosted/gcc/bench_native ## what jumps cost on this processor
	$(Q)$<

$(B)/hosted.stamp: FORCE
	@$(call stamp_if_changed,'$(HOSTCC) $(HOSTED_CFLAGS) $(hosted_sanitize_asan)' '$(NASM) $(NASMFLAGS)')

hosted: $(foreach variant,$(HOSTED_VARIANTS),$(patsubst %,$(B)/hosted/$(variant)/test_%,$(or $(T),$(HOSTED_STEMS)))) ## the engine in a process; T=STEM for one, LONG=1
	$(Q)$(if $(LONG),LONG=1) PYTHONPATH=tests/run prove --exec '' $^ \
	    $(if $(T),,tests/hosted/test_gdb.py)

ktest: ## tests in the guest; T=STEM for one subject, on SMP=N CPUs
	$(Q)tests/run/need.sh run test
	$(Q)SMP=$(or $(SMP),2) ./sonde test $(if $(T),kernel/$(T),kernel)

# The same kernel with a large text that nobody calls, for probes by the 100,000.
BENCH_PLACES := 130000
$(B)/bench/text.asm: $(B)/sonde.elf tests/bench/gen_text.py kernel/debug/elf64.py
	@mkdir -p $(@D)
	$(Q)$(PYTHON) tests/bench/gen_text.py -o $@ --at-least $(BENCH_PLACES) $<

$(B)/bench/text.o: $(B)/bench/text.asm
	$(call say,NASM,$<)
	$(Q)$(NASM) -f elf64 -I./ -o $@ $<

bench: $(B)/bench/text.o ## what hits, registering and memory cost; PEER=dir: others beside
	$(Q)tests/run/need.sh run
	$(Q)env -u MAKEFLAGS -u MAKEOVERRIDES CC='$(CC)' B=$(B)/bench \
	    EXTRA_OBJS=$(abspath $<) PEER='$(PEER)' tests/bench/run.sh

fuzz: ## the fuzzers, a minute each
	$(Q)tests/run/need.sh run test
	$(Q)./sonde test --long fuzz

M ?=
mutants: ## undo what the code does, piece by piece: do tests notice? M=NAME for some
	$(Q)tests/run/need.sh run test
	$(Q)tests/mutants/run.py --folder $(B)/mutants $(M)

check: $(B)/sonde.elf ## layers, headers, stems, format, lists; what clang and shellcheck say
	$(Q)prove --exec '' --comments -j 2 $(wildcard tests/lint/check_*)

format: ## let clang-format have its way
	$(Q)git ls-files '*.c' '*.h' | xargs clang-format -i

# ---- looking at it ---------------------------------------------------------------------

FN ?= kmain
disas: $(B)/sonde.elf ## one function with its source: FN=name
	$(Q)$(OBJDUMP) -S --disassemble=$(FN) $<

# Without sanitizers, so that anyone can link it.
INSN_HOST := $(PROBES_INSN:%.c=$(B)/libinsn/%.o)
$(B)/libinsn/%.o: %.c $(B)/flags.stamp
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) $(C_COMMON) -O2 -MMD -MP -c -o $@ $<
-include $(INSN_HOST:.o=.d) $(B)/libinsn/probes/text/gen_branches.d

$(B)/host/libinsn.a: $(INSN_HOST)
	$(call say,AR,$@)
	@mkdir -p $(@D) && rm -f $@
	$(Q)$(HOSTAR) rcs $@ $^

# The decoder beside Zydis and objdump. Optimised: it sees millions of instructions.
INSN_CHECK := $(patsubst %.c,$(B)/libinsn/%.o,$(wildcard tests/insn/*.c))
$(B)/insn/check_zydis: $(INSN_CHECK) $(B)/host/libinsn.a
	$(call say,HOSTLD,$@)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) -o $@ $^ -lZydis
-include $(INSN_CHECK:.o=.d)

# The planner of jumps, at every instruction of real programs.
PUN_CHECK := $(patsubst %.c,$(B)/libinsn/%.o,$(wildcard tests/pun/*.c) $(PUN) \
    $(filter probes/text/pad%,$(PROBES_TEXT)))
$(B)/pun/check_pun: $(PUN_CHECK) $(B)/host/libinsn.a
	$(call say,HOSTLD,$@)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) -o $@ $^
-include $(PUN_CHECK:.o=.d)

# The rules of regions, at every instruction of the kernel's file.
REGION_CHECK := $(patsubst %.c,$(B)/libinsn/%.o,tests/region/check_region.c \
    tests/region/port_elf.c probes/region.c probes/region_copy.c probes/check.c \
    probes/blacklist.c probes/boundary.c probes/emulate.c probes/recover.c probes/reject.c \
    probes/text/targets.c)
$(B)/region/check_region: $(REGION_CHECK) $(B)/host/libinsn.a
	$(call say,HOSTLD,$@)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) -o $@ $^
-include $(REGION_CHECK:.o=.d)

# The decoder under libFuzzer, which only clang has.
$(B)/fuzz/fuzz_insn: tests/fuzz/fuzz_insn.c $(PROBES_INSN) $(wildcard probes/insn/*.h) \
    $(B)/flags.stamp
	$(call say,HOSTCC,$@)
	@mkdir -p $(@D)
	$(Q)clang $(C_COMMON) -O1 $(SANITIZE) -fsanitize=fuzzer -o $@ $(filter %.c,$^)

host-insn: $(B)/host/libinsn.a ## the instruction decoder as a host library

hooks: ## install the pre-commit hook: format of changed files
	$(Q)install -m 755 tests/lint/pre-commit "$$(git rev-parse --git-path hooks)/pre-commit"

clean: ## remove all that was built
	$(Q)rm -rf $(B) compile_commands.json

# For scripts: what a variable of this file is.
print-%:
	@echo '$($*)'

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | sort | expand -t 14

.PHONY: all run gdb test test-long test-fresh unit hosted ktest bench bench-native fuzz stress mutants check format disas \
    host-insn hooks clean help
