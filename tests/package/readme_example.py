#!/usr/bin/env python3
"""Takes the C example out of README.md, compiles it as C11 with warnings as errors, runs it, and compares what it prints.

The example is the first ```c block; the expected output is the first ```text block behind it. The prose promises twenty lines.

Usage: readme_example.py README --cc CC --include DIR --library libggm.so
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

LINES = 20


def block(text, language, start=0):
    match = re.compile(rf"^```{language}\n(.*?)^```$", re.MULTILINE | re.DOTALL).search(text, start)
    if match is None:
        sys.exit(f"README has no ```{language} block")
    return match.group(1), match.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("readme", type=pathlib.Path)
    parser.add_argument("--cc", required=True)
    parser.add_argument("--include", type=pathlib.Path, required=True)
    parser.add_argument("--library", dest="shared", type=pathlib.Path, required=True)
    arguments = parser.parse_args()

    code, end = block(arguments.readme.read_text(encoding="utf-8"), "c")
    expected, _ = block(arguments.readme.read_text(encoding="utf-8"), "text", end)
    lines = len([line for line in code.splitlines() if line.strip()])
    if lines > LINES:
        sys.exit(f"the example has {lines} lines; {LINES} are promised")

    library = arguments.shared.resolve()
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder, "example.c"), pathlib.Path(folder, "example")
        source.write_text(code, encoding="utf-8")
        subprocess.run([arguments.cc, "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{arguments.include}", source,
                        "-o", program, library, f"-Wl,-rpath,{library.parent}"], check=True)
        done = subprocess.run([program], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    print(done.stdout + done.stderr)
    if done.returncode != 0:
        sys.exit(f"the example ended with {done.returncode}")
    if done.stdout != expected:
        sys.exit(f"the README says it prints\n{expected}")


if __name__ == "__main__":
    main()
