"""rows.py - reads tables of the engine, so that tests go through their rows."""

import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ENGINES = "probes/text/text_engine.h"
OPERATIONS = "probes/program/program_ops.h"
DETOURS = "probes/jump/detour.h"
LISTED = re.compile(r"^    X\((\w+)\)", re.M)
ROW = re.compile(r"struct text_engine text_engine_(\w+) = \{\s*\.name = \"(.*?)\"")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def engines():
    """{name: its file} of the engines that change text, in the order of the table."""
    folder = os.path.dirname(ENGINES)
    found = {}
    for file in os.listdir(os.path.join(ROOT, folder)):
        path = f"{folder}/{file}"
        found.update({word: (name, path) for word, name in ROW.findall(read(path))})
    return dict(found[word] for word in LISTED.findall(read(ENGINES)))


def operations():
    """{name: the function that makes the code of several operations, or None} of programs."""
    text = read("probes/program/op_value.c")
    shared = {"ARITHMETIC": "alu_emit", "SHIFT": "shift_emit"}  # by macros
    of = {
        name: shared[how]
        for how, name in re.findall(r"^(ARITHMETIC|SHIFT)\((\w+), ", text, re.M)
    }
    names = re.findall(r"^    X\(\w+, (\w+)\)", read(OPERATIONS), re.M)
    return {name: of.get(name) for name in names}


def detours():
    """The names of the kinds of detours."""
    return [
        name.lower() for name in re.findall(r"^    DETOUR_(\w+), +/", read(DETOURS), re.M)
    ]
