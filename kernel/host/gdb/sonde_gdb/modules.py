"""modules.py - gives gdb the symbols of the loaded modules.

The symbols are read from the guest, so gdb needs no file of a module. At each stop one word
tells whether modules have come or gone since the last stop. A module that was edited may
have come again to the place where it was.
"""

import elf64
import gdb

from sonde_gdb import fields, kernel, objects
from sonde_gdb.kernel import View

_seen = [None]  # the counter of changes at the last stop
_files = {}  # a file of symbols: its name in gdb


def each():
    """Yield the struct module_facts of each module."""
    first = kernel.address("modules")
    for at in range(first, first + 8 * fields.MODULES_MAX, 8):
        pointer = kernel.word(at)
        if pointer:
            yield View("module", pointer).inside("facts", "module_facts")


def symbols_of(facts):
    size = kernel.layout("module_symbol").size
    for i in range(facts.symbol_count):
        symbol = View("module_symbol", facts.symbols + i * size)
        kind = elf64.STT_FUNC if symbol.is_function else elf64.STT_OBJECT
        name = kernel.text_at(symbol.name, 256)
        yield name, symbol.start, symbol.size, kind


def file_of(facts):
    symbols = list(symbols_of(facts))
    text = objects.code(".text", facts.text, facts.text_end)
    rest = objects.code(".data", facts.text_end, facts.memory_end)
    places = [text, rest] if rest.size else [text]
    return objects.elf_file(places + objects.symbol_sections(symbols, len(places)))


def look(*_event):
    """Tell gdb of modules that have come, and of those that have gone."""
    try:
        if not kernel.is_known():
            return
        count = kernel.small(kernel.address("module_changes"))
        if count == _seen[0]:
            return
        there = set(map(file_of, each()))
        for gone in _files.keys() - there:
            objects.remove(_files.pop(gone))
        for new in there - _files.keys():
            _files[new] = objects.add(new)
        _seen[0] = count
    except kernel.Gone:
        pass  # early in the boot, or a module is just coming
    kernel.forget()


def start():
    gdb.events.stop.connect(look)
