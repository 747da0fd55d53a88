#!/usr/bin/env python3
"""make.py - write the decoder's page as one file: make.py WASM OUTPUT"""

import base64
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def read(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read()


def main(wasm, output):
    with open(wasm, "rb") as file:
        binary = base64.b64encode(file.read()).decode()
    page = read("page.html").replace("@DECODE@", read("decode.js"))
    page = page.replace("@PAGE@", read("page.js").replace("'use strict';\n", ""))
    with open(output, "w", encoding="utf-8") as file:
        file.write(page.replace("@WASM@", binary))


main(*sys.argv[1:])
