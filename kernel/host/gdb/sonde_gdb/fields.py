"""fields.py - lists every name of the kernel that gdb's helpers use.

When the kernel renames something, change the name here. `make check` asks gdb for each of
these names (tests/lint/check_gdb). No offset is written down here: the offsets come from
the debug data.
"""

# struct: its fields
STRUCTS = {
    "site": "addr probes boost_slot step_slot bytes len is_sti way state emul",
    "jump_site": "region detour_off pad_off copy_off jump_len jump_why kind specialized",
    "emulation": "kind disp",
    "sti_pair": "slot",
    "region": "addr bytes len count starts cell copies is_open",
    "kprobe": "addr kind pre_handler light_handler post_handler fault_handler flags counter "
    "hits nmissed missed site next",
    "kretprobe": "kp handler entry_handler nmissed coalesced dropped",
    "shadow": "top len last entries",
    "shadow_entry": "ret below holder",
    "kretprobe_holder": "rp",
    "slot_header": "cell_len",
    "plat_pattern": "code len entry holes hole_count",
    "probe_cpu": "depth light plat hits",
    "probe_hit": "site regs running is",
    "hit_facts": "stage",
    "plat_cpu": "nmi_shadow counters",
    "site_table": "len entries",
    "percpu": "id probe current idle preempt_count irq_depth nmi_depth",
    "thread": "sp tid name state cpu preempted_regs probe all_link",
    "pt_regs": "r15 r14 r13 r12 bp bx r11 r10 r9 r8 ax cx dx si di ip flags sp vector "
    "error_code",
    "mutex": "owner",
    "console_probe": "link name one_ptr",
    "event": "id born name shape arg_count args next",
    "fetch_arg": "name type offset count",
    "fetch_type": "size kind",
    "module": "facts",
    "module_facts": "name text text_end memory_end symbols symbol_count",
    "module_symbol": "start name size is_function",
    "record_probe": "ip",
    "record_return": "func ret_ip",
}

# Several structures have the same name. For such a name: a variable that points to the
# structure which is meant.
POINTED_AT = {"table": "registry"}

# name in these files: (file of the kernel, variable there)
VARIABLES = {
    "registry": ("probes/core/registry.c", "table"),
    "grave": ("probes/core/registry.c", "grave"),
    "cell_map": ("probes/core/insn_slot.c", "map"),
    "locks": ("probes/port/port_held.c", "locks"),
    "cpus": ("kernel/cpu/percpu.c", "cpus"),
    "threads": ("kernel/thread/sched.c", "sched_all"),
    "console_probes": ("probes/console/console_probe.c", "probes"),
    "modules": ("kernel/module/module.c", "modules"),
    "module_changes": ("kernel/module/module.c", "module_changes"),
    "events": ("probes/trace/language/event.c", "events"),
    "event_print": ("probes/trace/language/event.c", "event_print"),
    "event_stack": ("probes/trace/language/event.c", "event_stack"),
}

# enumerators
CONSTANTS = ("WAY_EMULATE", "INSN_CALL_REL", "SITE_ARMED", "SITE_OPTIMIZED", "DETOUR_PROGRAM",
             "DETOUR_RETURN", "PLAT_TEXT", "PLAT_HOLE_HANDLER", "THREAD_RUNNING",
             "THREAD_DEAD", "SWITCH_IRQ", "KPROBE_KIND_RETURN", "HIT_PRE",
             "HIT_FAULT")  # fmt: skip

# enum: the prefix of its enumerators' names
ENUMS = {
    "site_state": "SITE_",
    "site_way": "WAY_",
    "detour_kind": "DETOUR_",
    "probe_reason": "PROBE_",
    "thread_state": "THREAD_",
    "event_shape": "EVENT_",
    "fetch_kind": "FETCH_",
}

# symbols of assembly and of the linker
SYMBOLS = ("kretprobe_trampoline", "exc_int3", "_text", "_etext", "_end", "notes_start",
           "notes_end", "detour_text_start", "detour_text_end")  # fmt: skip

# patterns of code, each a struct plat_pattern
PATTERNS = (
    "detour_specialized",
    "detour_specialized_dead",
    "detour_specialized_leaf",
    "detour_specialized_leaf_dead",
    "detour_light",
    "detour_light_dead",
    "detour_light_keep",
    "detour_light_keep_dead",
)

# The static arrays that have a sentence for each value of an enum: (file, array).
SENTENCES = {"detour_kind": ("probes/jump/detour.c", "sentences")}

ENDS = ("power_off", "panic_exit")  # functions that end the guest

# A macro of probes/returns/return_point.h, which debug data leaves out.
RETURN_POINT_OFF = 10
REACH_START = 0xFFFFFFFF00000000  # kernel/memmap.h
MODULES_MAX = 64  # kernel/module/module.h
MODULE_WINDOW_LEN = 64 << 20  # the same; its start is the next large page behind _end
LARGE_PAGE_LEN = 2 << 20
PAGE_LEN = 4096
OWNER_LEN = 8  # probes/core/insn_slot.c: the last bytes of a cell
FREE_OWNER = 0xCCCCCCCCCCCCCCCC
