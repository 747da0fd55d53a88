"""rows.py - reads tables of the engine, so that tests go through their rows."""

import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ENGINES = "probes/text/text_engine.h"
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
