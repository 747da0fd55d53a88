"""sites.py - probed addresses: their state, the code that was made for them, their hits."""

from sonde_gdb import fields, kernel
from sonde_gdb.kernel import View, constant


@kernel.until_it_runs
def by_address():
    """{address: struct site}, in order of address."""
    table = kernel.word(kernel.address("registry"))
    if not table:
        return {}
    table = View("site_table", table)
    grave = kernel.address("grave")
    pointers = kernel.read(table.at("entries"), 8 * table.len)
    found = [int.from_bytes(pointers[i : i + 8], "little")
             for i in range(0, len(pointers), 8)]  # fmt: skip
    sites = [View("site", pointer) for pointer in found if pointer and pointer != grave]
    return {site.addr: site for site in sorted(sites, key=lambda site: site.addr)}


def at(addr):
    return by_address().get(addr)


def probes_of(site):
    """Its struct kprobe, in order of registration."""
    probe = site.probes
    while probe:
        view = View("kprobe", probe)
        yield view
        probe = view.next


def counted(probe):
    """Its hits: those by traps, and those by jumps, which each CPU counts for itself."""
    hits = probe.hits
    if probe.counter:
        for cpu in cpus():
            hits += kernel.word(cpu.inside("plat", "plat_cpu").counters + 8 * probe.counter)
    return hits


def is_jump(site):
    return site.state == constant("SITE_OPTIMIZED")


def is_armed(site):
    return is_jump(site) or site.state == constant("SITE_ARMED")


def is_call(site):
    """A direct call: its jump is a call with another displacement."""
    return site.way == constant("WAY_EMULATE") and \
        site.inside("emul", "emulation").kind == constant("INSN_CALL_REL")  # fmt: skip


def call_target(site):
    return site.addr + site.len + site.inside("emul", "emulation").disp & kernel.MASK


def jump_of(site):
    """Its struct jump_site."""
    return View("jump_site", site.here)


def sti_pair(site):
    """Of an STI: it lies in front of the site."""
    return View("sti_pair", site.here - kernel.layout("sti_pair").size)


def pad(site):
    """Where its jump lands; 0: on the detour."""
    offset = jump_of(site).pad_off
    return site.addr + offset & kernel.MASK if offset else 0


def detour(site):
    """What a jump there reaches in the end; 0: there is nothing."""
    offset = jump_of(site).detour_off
    return site.addr + offset & kernel.MASK if offset else 0


def region(site):
    """Its struct region, None."""
    pointer = jump_of(site).region
    return View("region", pointer) if pointer else None


# ---- CPUs ----


@kernel.until_it_runs
def cpus():
    """The struct probe_cpu of each CPU."""
    found = []
    for area in areas():
        if area.probe:
            found.append(View("probe_cpu", area.probe))
    return found


@kernel.until_it_runs
def areas():
    """The struct percpu of each CPU, by its number."""
    where = kernel.variable("cpus")
    first, last = where.type.range()
    pointers = [kernel.word(int(where.address) + 8 * i) for i in range(last - first + 1)]
    return [View("percpu", pointer) for pointer in pointers if pointer]


def hits_of(cpu):
    """Its active hits, the first one first."""
    size = kernel.layout("probe_hit").size
    return [View("probe_hit", cpu.at("hits") + i * size) for i in range(min(cpu.depth, 16))]


def site_of_hit(hit):
    """As hit_site(); None: it is not filled in yet."""
    site = hit.site or (hit.running and View("kprobe", hit.running).site)
    return View("site", site) if site else None


def hit_with(image):
    """The active hit whose struct pt_regs is at @image, None: there is none. A hit that is
    not filled in yet still has the image of the hit before it, maybe at the same place.
    """
    return next((hit for cpu in cpus() for hit in hits_of(cpu)
                 if hit.regs == image and site_of_hit(hit)), None)  # fmt: skip


# ---- cells ----


class Cell:
    """A piece of generated code.  start: its first byte   off: how far in it an ip is"""

    def __init__(self, start, length, site, off):
        self.start, self.length, self.site, self.off = start, length, site, off

    def holds(self, addr):
        return self.start <= addr < self.start + self.length


@kernel.until_it_runs
def _map():
    where = kernel.variable("cell_map")
    return int(where["start"]), int(where["pages"]), int(where["bits"])


def cell_at(ip):
    """The Cell around @ip, None when there is none: as insn_slot_owner() of the kernel."""
    start, pages, bits = _map()
    page = (ip - start) // fields.PAGE_LEN
    if not bits or not 0 <= page < pages:
        return None
    if not kernel.read(bits + page // 8, 1)[0] >> page % 8 & 1:
        return None
    base = ip & -fields.PAGE_LEN
    length = View("slot_header", base).cell_len
    rest = fields.PAGE_LEN % length
    first = rest if rest >= kernel.layout("slot_header").size else length
    if ip - base < first:
        return None
    off = (ip - base - first) % length
    owner = kernel.word(ip - off + length - fields.OWNER_LEN)
    if owner == fields.FREE_OWNER:
        return None
    return Cell(ip - off, length, View("site", owner), off)


def jump_target(addr):
    """Where the jmp32 at @addr leads, None when there is none."""
    code = kernel.read(addr, 5)
    if code[0] != 0xE9:
        return None
    return addr + 5 + int.from_bytes(code[1:], "little", signed=True) & kernel.MASK


def is_generated(ip):
    """Is it code that the engine has made: a cell or a pad, neither image nor module?"""
    if ip < fields.REACH_START or kernel.address("_text") <= ip < kernel.address("_etext"):
        return False
    try:
        return cell_at(ip) is not None or pad_at(ip) is not None
    except kernel.Gone:
        return False


def pad_at(ip):
    """The cell that the pad at @ip leads to, None: there is no pad."""
    target = jump_target(ip)
    return cell_at(target) if target else None
