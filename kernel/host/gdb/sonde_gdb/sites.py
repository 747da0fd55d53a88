"""sites.py - reads the probed addresses: state, the code that was made for them, hits."""

from sonde_gdb import fields, kernel
from sonde_gdb.kernel import View, constant


@kernel.until_it_runs
def by_address():
    """Return {address: struct site}, in order of address."""
    table = kernel.word(kernel.address("registry"))
    if not table:
        return {}
    table = View("site_table", table)
    grave = kernel.address("grave")
    pointers = kernel.read(table.at("entries"), 8 * table.len)
    found = [
        int.from_bytes(pointers[i : i + 8], "little") for i in range(0, len(pointers), 8)
    ]
    sites = [View("site", pointer) for pointer in found if pointer and pointer != grave]
    return {site.addr: site for site in sorted(sites, key=lambda site: site.addr)}


def at(addr):
    return by_address().get(addr)


def probes_of(site):
    """Yield each struct kprobe of the site, in order of registration."""
    probe = site.probes
    while probe:
        view = View("kprobe", probe)
        yield view
        probe = view.next


def counted(probe):
    """Return the hits of a probe: the hits by traps, and the hits by jumps, for which
    each CPU has a counter of its own.
    """
    hits = probe.hits
    if probe.counter:
        for cpu in cpus():
            hits += kernel.word(
                cpu.inside("plat", "plat_cpu").counters + 8 * probe.counter
            )
    return hits


def is_jump(site):
    return site.state == constant("SITE_OPTIMIZED")


def is_armed(site):
    return is_jump(site) or site.state == constant("SITE_ARMED")


def is_call(site):
    """Is the probed instruction a direct call? Then its jump is a call, too,
    with another displacement.
    """
    return site.way == constant("WAY_EMULATE") and site.inside(
        "emul", "emulation"
    ).kind == constant("INSN_CALL_REL")


def call_target(site):
    return site.addr + site.len + site.inside("emul", "emulation").disp & kernel.MASK


def jump_of(site):
    """Return the struct jump_site of a site; both are at the same address."""
    return View("jump_site", site.here)


def sti_pair(site):
    """Return the struct sti_pair of a probed STI. It lies in front of the struct site."""
    return View("sti_pair", site.here - kernel.layout("sti_pair").size)


def pad(site):
    """Return the address of the jump's pad; 0: the jump leads straight to the detour."""
    offset = jump_of(site).pad_off
    return site.addr + offset & kernel.MASK if offset else 0


def detour(site):
    """Return the address of the detour to which a jump leads; 0: there is no detour."""
    offset = jump_of(site).detour_off
    return site.addr + offset & kernel.MASK if offset else 0


def region(site):
    """Return the struct region of a site; None: there is none."""
    pointer = jump_of(site).region
    return View("region", pointer) if pointer else None


# ---- CPUs ----


@kernel.until_it_runs
def cpus():
    """Return the struct probe_cpu of each CPU."""
    found = []
    for area in areas():
        if area.probe:
            found.append(View("probe_cpu", area.probe))
    return found


@kernel.until_it_runs
def areas():
    """Return the struct percpu of each CPU, by its number."""
    where = kernel.variable("cpus")
    first, last = where.type.range()
    pointers = [kernel.word(int(where.address) + 8 * i) for i in range(last - first + 1)]
    return [View("percpu", pointer) for pointer in pointers if pointer]


def hits_of(cpu):
    """Return the active hits of a CPU, the oldest first."""
    size = kernel.layout("probe_hit").size
    return [
        View("probe_hit", cpu.at("hits") + i * size) for i in range(min(cpu.depth, 16))
    ]


def site_of_hit(hit):
    """Return the site of a hit, as hit_site() of the kernel does; None: the kernel has
    not filled in this hit yet.
    """
    site = hit.site or (hit.running and View("kprobe", hit.running).site)
    return View("site", site) if site else None


def hit_with(image):
    """Return the active hit with its struct pt_regs at @image; None: there is none. A hit
    without a site is left out: the kernel has not filled it in, so its image is that of
    an older hit, and may be at the same address.
    """
    return next(
        (
            hit
            for cpu in cpus()
            for hit in hits_of(cpu)
            if hit.regs == image and site_of_hit(hit)
        ),
        None,
    )


# ---- cells ----


class Cell:
    """A cell.  start: its first byte   off: offset of the ip that was looked up"""

    def __init__(self, start, length, site, off):
        self.start, self.length, self.site, self.off = start, length, site, off

    def holds(self, addr):
        return self.start <= addr < self.start + self.length


@kernel.until_it_runs
def _map():
    where = kernel.variable("cell_map")
    return int(where["start"]), int(where["pages"]), int(where["bits"])


def cell_at(ip):
    """Return the Cell around @ip, as insn_slot_owner() of the kernel does; None:
    there is none.
    """
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
    """Return the target of the jmp32 at @addr; None: there is no jmp32."""
    code = kernel.read(addr, 5)
    if code[0] != 0xE9:
        return None
    return addr + 5 + int.from_bytes(code[1:], "little", signed=True) & kernel.MASK


def is_generated(ip):
    """Is @ip in code that the engine has made, a cell or a pad, and not in the image or
    in a module?
    """
    if ip < fields.REACH_START or kernel.address("_text") <= ip < kernel.address(
        "_etext"
    ):
        return False
    try:
        return cell_at(ip) is not None or pad_at(ip) is not None
    except kernel.Gone:
        return False


def pad_at(ip):
    """Return the cell to which the pad at @ip leads; None: there is no pad."""
    target = jump_target(ip)
    return cell_at(target) if target else None
