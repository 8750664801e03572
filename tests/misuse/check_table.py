#!/usr/bin/env python3
"""Fails for a field of a struct, or a parameter of a function, of ggm.h that has no row in the table of misuse.

Usage: tests/misuse/check_table.py PROGRAM [--header FILE]
PROGRAM is the built ggm_misuse_rows, which prints the table. Rows that name nothing of the header fail as well.
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys

HEADER = pathlib.Path(__file__).resolve().parents[2] / "include" / "ggm" / "ggm.h"
FUNCTION_POINTER = re.compile(r"\(\s*\*\s*(\w+)\s*\)\s*\(")


def plain(text):
    """The header without comments, preprocessor lines and annotations."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"^[ \t]*#(?:.*\\\n)*.*$", "", text, flags=re.M)
    return re.sub(r"\b(?:GGM_DEV|const)\b", " ", text)


def struct_fields(text):
    for match in re.finditer(r"typedef struct \w+\s*\{(.*?)\}\s*(\w+)\s*;", text, flags=re.S):
        for declaration in match.group(1).split(";"):
            declaration = declaration.strip()
            if not declaration:
                continue
            pointer = FUNCTION_POINTER.search(declaration)
            if pointer:
                yield f"{match.group(2)}.{pointer.group(1)}"
                continue
            for name in declaration.split(","):
                yield f"{match.group(2)}.{re.findall(r'[A-Za-z_]\w*', name)[-1]}"


def parameters(text):
    for match in re.finditer(r"GGM_API[^;(]*?\b(ggm_\w+)\s*\(([^)]*)\)\s*;", text, flags=re.S):
        for parameter in match.group(2).split(","):
            words = re.findall(r"[A-Za-z_]\w*", parameter)
            if words != ["void"]:
                yield f"{match.group(1)}.{words[-1]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--header", type=pathlib.Path, default=HEADER)
    arguments = parser.parse_args()

    text = plain(arguments.header.read_text(encoding="utf-8"))
    fields, params = list(struct_fields(text)), list(parameters(text))
    if not fields or not params:
        print(f"{arguments.header}: no structs or no prototypes found")
        return 1
    rows = collections.Counter()
    exempt = 0
    for line in subprocess.run([arguments.program], capture_output=True, text=True, check=True).stdout.splitlines():
        subject, _, status = line.split("\t")
        rows[subject] += 1
        exempt += status == "exempt"

    problems = [f"{name}: no row of misuse" for name in fields + params if name not in rows]
    problems += [f"{name}: a row of misuse names what the header does not have" for name in rows if name not in set(fields + params)]
    for problem in problems:
        print(problem)
    print(f"misuse table: {len(fields)} fields, {len(params)} parameters, {sum(rows.values()) - exempt} rows, "
          f"{exempt} exempt with a reason, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
