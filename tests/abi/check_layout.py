#!/usr/bin/env python3
"""Compares offset and size of every field of every public struct, and the value of every constant, with tests/abi/layout.txt.

A C program made from the header prints them, so the compiler has the word. It also fails for hidden padding. Fields may only be
appended and constants only be added: after such a change --update records the new layout. Anything else needs a new name.

Usage: tests/abi/check_layout.py [--update] [--cc COMPILER]
"""
import argparse
import difflib
import os
import pathlib
import subprocess
import sys
import tempfile

from header import PATH, Header

RECORD = pathlib.Path(__file__).resolve().parent / "layout.txt"


def program(header):
    lines = ['#include "ggm/ggm.h"', "#include <stdio.h>", "int main(void) {"]
    for name, fields in header.structs():
        lines.append(f'  printf("{name} size %u\\n", (unsigned)sizeof({name}));')
        for field in fields:
            lines.append(f'  printf("{name}.{field} offset %u size %u\\n", (unsigned)offsetof({name}, {field}), '
                         f"(unsigned)sizeof((({name}*)0)->{field}));")
    for name in header.constants():
        lines.append(f'  printf("{name} = %lld\\n", (long long)({name}));')
    return "\n".join(lines + ["  return 0;", "}", ""])


def measured(compiler):
    with tempfile.TemporaryDirectory() as folder:
        source, binary = pathlib.Path(folder) / "layout.c", pathlib.Path(folder) / "layout"
        source.write_text(program(Header()), encoding="utf-8")
        subprocess.run([compiler, "-std=c99", "-I", str(PATH.parents[1]), str(source), "-o", str(binary)], check=True)
        return subprocess.run([str(binary)], check=True, capture_output=True, text=True).stdout


def padding(text):
    """Names of fields that do not start where the one before ends, and structs that end later than their last field."""
    sizes, ends = {}, {}
    for line in text.splitlines():
        words = line.split()
        if words[1] == "size":
            sizes[words[0]] = int(words[2])
        elif words[1] == "offset":
            struct, offset = words[0].split(".")[0], int(words[2])
            if offset != ends.get(struct, 0):
                yield f"{words[0]}: {offset - ends.get(struct, 0)} bytes of padding before it"
            ends[struct] = offset + int(words[4])
    for struct, size in sizes.items():
        if size != ends[struct]:
            yield f"{struct}: {size - ends[struct]} bytes of padding at its end"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--cc", default=os.environ.get("CC", "gcc"))
    arguments = parser.parse_args()
    now = measured(arguments.cc)
    holes = list(padding(now))
    print("\n".join(holes), end="\n" if holes else "")
    if arguments.update:
        RECORD.write_text(now, encoding="utf-8")
        print(f"recorded {len(now.splitlines())} lines in {RECORD.name}")
        return 1 if holes else 0
    recorded = RECORD.read_text(encoding="utf-8")
    difference = list(difflib.unified_diff(recorded.splitlines(), now.splitlines(), "recorded", "header", lineterm="", n=0))
    print("\n".join(difference), end="\n" if difference else "")
    print(f"layout: {len(now.splitlines())} lines, {len(difference)} lines of difference, {len(holes)} holes")
    return 1 if holes or difference else 0


if __name__ == "__main__":
    sys.exit(main())
