"""gdb_compile.py - runs inside gdb: it compiles C expressions to agent bytecode. The
meaning of an expression is that at one instruction of an image. No program runs.

SONDE_COMPILE in the environment is JSON: {"address": N, "is_return": false or true,
"expressions": [...]}. The last line that is printed is JSON: for each expression
{"code": hex, "type": word}, or {"error": text}.

Gdb finds the scope of a variable by a frame. So this program makes a core file in which a
thread stands at the instruction. The core file holds nothing but that program counter.
"""

import json
import os
import re
import struct
import tempfile

import gdb

# name: (opcode, bytes of its operand), as `maint agent-eval` prints them.
OPS = {name: (number, size) for number, (name, size) in enumerate([
    ("float", 0), ("add", 0), ("sub", 0), ("mul", 0), ("div_signed", 0), ("div_unsigned", 0),
    ("rem_signed", 0), ("rem_unsigned", 0), ("lsh", 0), ("rsh_signed", 0),
    ("rsh_unsigned", 0), ("trace", 0), ("trace_quick", 1), ("log_not", 0), ("bit_and", 0),
    ("bit_or", 0), ("bit_xor", 0), ("bit_not", 0), ("equal", 0), ("less_signed", 0),
    ("less_unsigned", 0), ("ext", 1), ("ref8", 0), ("ref16", 0), ("ref32", 0), ("ref64", 0),
    ("ref_float", 0), ("ref_double", 0), ("ref_long_double", 0), ("l_to_d", 0),
    ("d_to_l", 0), ("if_goto", 2), ("goto", 2), ("const8", 1), ("const16", 2),
    ("const32", 4), ("const64", 8), ("reg", 2), ("end", 0), ("dup", 0), ("pop", 0),
    ("zero_ext", 1), ("swap", 0)], 1)}  # fmt: skip
OPS |= {"pick": (0x32, 1), "rot": (0x33, 0)}

CORE, NOTE, PRSTATUS, PC = 4, 4, 1, 16
RAX = "0"  # a register's number, as DWARF counts them
RETVAL = re.compile(r"(?<![\w.])(?<!->)retval\b")
ONLY_RETVAL = "in a ret an expression has only retval and globals"
GONE = re.compile(r"optimized out|cannot use|not available|entry.value", re.I)


def core_file(path, address):
    """Write a core file of Linux in which one thread stands at @address."""
    registers = [0] * 27
    registers[PC] = address
    status = bytearray(336)
    struct.pack_into("<I", status, 32, 1)  # the thread's number
    struct.pack_into("<27Q", status, 112, *registers)
    note = struct.pack("<III8s", 5, len(status), PRSTATUS, b"CORE") + status
    header = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\2\1\1",
        CORE,
        62,
        1,
        0,
        64,
        0,
        0,
        64,
        56,
        1,
        0,
        0,
        0,
    )
    program = struct.pack("<IIQQQQQQ", NOTE, 4, 120, 0, 0, len(note), 0, 4)
    with open(path, "wb") as file:
        file.write(header + program + note)


def stand_at(address):
    with tempfile.NamedTemporaryFile() as file:
        core_file(file.name, address)
        gdb.execute(f"core-file {file.name}", to_string=True)


def assemble(text):
    code = bytearray()
    for line in text.splitlines():
        match = re.fullmatch(r"\s*\d+\s+(\w+)(?:\s+(-?\d+))?", line)
        if not match:
            continue
        number, size = OPS[match[1]]
        code += bytes([number]) + (int(match[2] or 0) % (1 << 8 * size)).to_bytes(
            size, "big"
        )
    return code.hex()


def bytecode(expression, is_return=False):
    text = gdb.execute(f"maint agent-eval {expression}", to_string=True)
    if is_return and set(re.findall(r"\breg (\d+)", text)) - {RAX}:
        raise gdb.error(ONLY_RETVAL)
    return assemble(text)


def function_at(address):
    """Return the block of the function that has an instruction; None: there is none."""
    block = gdb.block_for_pc(address)
    while block and not block.function:
        block = block.superblock
    return block


def with_result(expression, address):
    """Return the expression of a return with the register that retval is in."""
    block = function_at(address)
    if not block:
        raise gdb.error("debug data does not know what it returns")
    function = block.function
    kind = function.type.target()
    if kind.code == gdb.TYPE_CODE_VOID and RETVAL.search(expression):
        raise gdb.error(f"{function.name} returns nothing")
    return RETVAL.sub(f"(({kind})$rax)", expression)


def is_char(kind):
    return kind.strip_typedefs().unqualified().name == "char"


def word_for(kind):
    """Return the name that kernel/debug/gen_params.py has for a type; None: a value of
    that type is not in a register.
    """
    if kind.code == gdb.TYPE_CODE_PTR:
        return "string" if is_char(kind.target()) else "x64"
    numbers = (
        gdb.TYPE_CODE_INT,
        gdb.TYPE_CODE_CHAR,
        gdb.TYPE_CODE_BOOL,
        gdb.TYPE_CODE_ENUM,
    )
    if kind.code not in numbers or kind.sizeof not in (1, 2, 4, 8):
        return None
    if kind.code == gdb.TYPE_CODE_ENUM:
        return "s32"
    return f"{'s' if kind.is_signed else 'u'}{8 * kind.sizeof}"


def type_of(expression):
    """Return (name, gdb.Type) of an expression, without reading its value. The type is
    None for arrays, and for types without a name.
    """
    said = gdb.execute(f"whatis {expression}", to_string=True).strip()
    name = said.removeprefix("type = ")
    try:
        pointer = gdb.parse_and_eval(f"({name} *) 0")
    except gdb.error:
        return name, None
    return name, pointer.type.target().strip_typedefs().unqualified()


def compile_one(typed, address, is_return):
    expression = with_result(typed, address) if is_return else typed
    name, kind = type_of(expression)
    if re.match(r"(const )?char \[\d*\]$", name):
        return {"code": bytecode(f"&({expression})[0]", is_return), "type": "string"}
    word = kind and word_for(kind)
    if not word:
        return {"error": f"{typed} is a {name}: name a part of it"}
    return {"code": bytecode(expression, is_return), "type": word}


def farness(pc, address):
    return pc < address, abs(pc - address)


def nearest_line(expression, address):
    """Return the line nearest to @address in the same function where the expression has a
    value, or None. A line behind @address is preferred to a line in front of it.
    """
    function = function_at(address)
    symtab = gdb.find_pc_line(address).symtab
    if not function or not symtab:
        return None
    for item in sorted(symtab.linetable(), key=lambda item: farness(item.pc, address)):
        if item.line and function.start <= item.pc < function.end:
            try:
                stand_at(item.pc)
                bytecode(expression)
                return f"{os.path.basename(symtab.filename)}:{item.line}"
            except gdb.error:
                pass
    return None


def names_at(address):
    """Return the names of the variables that are visible at @address in its function, and
    in functions around it if it was inlined.
    """
    block, names = gdb.block_for_pc(address), []
    while block and not block.is_global and not block.is_static:
        names += [s.name for s in block if s.is_variable or s.is_argument]
        block = block.superblock
    return sorted(set(names))


def explained(expression, address, said):
    if GONE.search(said):
        line = nearest_line(expression, address)
        return f"{expression} has no value there" + (f"; {line} has it" if line else "")
    if "No symbol" in said:
        return f"{said} There are: {', '.join(names_at(address)) or 'none'}"
    return said


def main():
    request = json.loads(os.environ["SONDE_COMPILE"])
    address, answers = request["address"], []
    gdb.execute("set osabi GNU/Linux")
    for expression in request["expressions"]:
        stand_at(address)
        try:
            answers.append(compile_one(expression, address, request["is_return"]))
        except gdb.error as error:
            answers.append({"error": explained(expression, address, str(error))})
    print(json.dumps(answers))


main()
