# image.mk - links an image of the kernel: $(eval $(call image,FOLDER,OBJS)) gives the rules
# for FOLDER/sonde.elf, which has the objects that the variable OBJS lists.
#
# An image is linked twice, because it has tables that describe it: first with empty tables,
# then with those of the first image. They come last, so nothing moves. entry_nops.py makes
# one NOP of the NOPs at each function's entry, before other programs read the code. The
# frames of assembly routines for debuggers are made from the first image, too; they are
# never loaded.

TABLE_TOOLS := kernel/debug/nasm_table.py kernel/debug/elf64.py
ksyms_maker := kernel/debug/gen_ksyms.py
inlines_maker := kernel/debug/gen_inlines.py
params_maker := kernel/debug/gen_params.py
lines_maker := kernel/debug/gen_lines.py
frames_maker := kernel/debug/gen_frames.py
targets_maker := probes/region/gen_targets.py
ksyms_needs := $(ksyms_maker) $(TABLE_TOOLS)
inlines_needs := $(inlines_maker) $(TABLE_TOOLS)
params_needs := $(params_maker) $(TABLE_TOOLS)
lines_needs := $(lines_maker) $(TABLE_TOOLS)
debug_needs := kernel/debug/gen_debug.py kernel/debug/dwarf.py $(inlines_needs) $(params_maker) \
    $(lines_maker)
frames_needs := $(frames_maker) kernel/debug/asm_frames.py kernel/debug/elf64.py \
    kernel/base/registers.h
targets_needs := $(targets_maker) $(ksyms_needs) $(B)/link/gen_targets
targets_options := --finder $(B)/link/gen_targets

LINK_TOOLS := kernel/debug/entry_nops.py kernel/debug/elf64.py
image_link = $(LD) $(LDFLAGS) $(1) -o $@ $($(2)) $(3)
image_nops = && $(TOOL_PYTHON) kernel/debug/entry_nops.py $@ \
    $(if $(filter 1,$(V)),,>/dev/null)$(image_after)

# A table before there is an image, and made from an image: folder, table.
define image_table_empty
$(1)/link/$(2)0.asm: $$($(2)_needs)
	@mkdir -p $$(@D)
	$$(Q)$$(TOOL_PYTHON) $$($(2)_maker) --empty -o $$@
endef

define image_table
$(1)/link/$(2)%.asm: $(1)/link/%.elf $$($(2)_needs)
	$$(Q)$$(TOOL_PYTHON) $$($(2)_maker) $$($(2)_options) -o $$@ $$<
endef

define image
$(foreach table,ksyms inlines params lines targets,$(eval $(call image_table_empty,$(1),$(table))))
$(foreach table,ksyms frames targets,$(eval $(call image_table,$(1),$(table))))

$(patsubst %,$(1)/link/%%.asm,inlines params lines): $(1)/link/%.elf $$(debug_needs)
	$$(Q)$$(TOOL_PYTHON) kernel/debug/gen_debug.py $$< $$(patsubst %,$(1)/link/%$$*.asm,inlines \
	    params lines)

# What stays refers to nothing that is freed; see init_refs.py.
$(1)/link/1.checked: $(1)/link/1.elf kernel/module/init_refs.py
	$$(Q)$$(TOOL_PYTHON) kernel/module/init_refs.py $$<
	@touch $$@

$(1)/link.stamp: FORCE
	@$$(call stamp_if_changed,'$$(LD) $$(LDFLAGS)' '$$($(2))' '$$(EXTRA_OBJS)')

$(1)/link/abi.asm: kernel/module/abi.py $$(B)/modules.stamp
	@mkdir -p $$(@D)
	$$(Q)$$(TOOL_PYTHON) kernel/module/abi.py -o $$@

$(1)/link/%.o: $(1)/link/%.asm $$(B)/flags.stamp
	$$(Q)$$(NASM) -f elf64 -o $$@ $$<

image_needs_$(2) := $$($(2)) linker.ld $$(LINK_TOOLS) $(1)/link.stamp
image_tables_$(2)_1 := $$(patsubst %,$(1)/link/%.o,ksyms0 inlines0 params0 lines0 targets0 abi)
image_tables_$(2)_2 := $$(patsubst %,$(1)/link/%.o,ksyms1 inlines1 params1 lines1 targets1 \
    frames1 abi)

$(1)/link/1.elf: $$(image_tables_$(2)_1) $$(image_needs_$(2))
	$$(call say,LD,$$@)
	$$(Q)$$(call image_link,--emit-relocs,$(2),$$(image_tables_$(2)_1))$$(image_nops)

$(1)/sonde.elf: $$(image_tables_$(2)_2) $$(image_needs_$(2)) $(1)/link/1.checked
	$$(call say,LD,$$@)
	$$(Q)$$(call image_link,--emit-relocs -Map=$(1)/sonde.map,$(2),$$(image_tables_$(2)_2))$$(image_nops)

# The last link has moved nothing that its tables describe.
$(1)/sonde.checked: $(1)/sonde.elf
	$$(Q)$$(TOOL_PYTHON) $$(ksyms_maker) $$< | cmp - $(1)/link/ksyms1.asm
	$$(Q)$$(TOOL_PYTHON) $$(targets_maker) $$(targets_options) $$< | cmp - $(1)/link/targets1.asm
	@touch $$@
endef

$(B)/link/gen_targets: $(addprefix $(B)/libinsn/probes/region/,gen_targets.o find_targets.o) \
    $(B)/host/libinsn.a
	$(call say,HOSTLD,$@)
	@mkdir -p $(@D)
	$(Q)$(HOSTCC) -o $@ $^
