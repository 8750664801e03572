#!/usr/bin/env python3
"""Checks that the repository speaks of the project alone and is finished.

Refused in every tracked text file: paths of somebody's machine, addresses in private networks, merge markers, unfinished-work
marks, and white space at the end of a line. Refused in the root: anything that is not in ROOT.

Usage: cmake/check_words.py [--root DIR]. Prints each offence as file:line and exits with 1 if there is one.
"""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = {
    "include", "src", "tests", "bench", "bindings", "cmake", "docs", ".ci",
    "CMakeLists.txt", "CMakePresets.json", "README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md",
    ".clang-format", ".clang-tidy", ".gitignore", ".gitattributes", ".github",
}
# Written in pieces, so that this file does not offend itself.
PATTERNS = [
    (re.compile(r"/(?:home|Users)/[A-Za-z0-9_.-]+"), "a path of somebody's home"),
    (re.compile(r"(?<![\w.])/(?:root|work|workspace|mnt)/[A-Za-z0-9_.-]+"), "a path of somebody's machine"),
    (re.compile(r"(?<![\w])/tmp/[A-Za-z0-9_.-]+"), "a fixed path in the temporary folder"),
    (re.compile(r"\b(?:10\.\d+|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.\d+\.\d+\b"), "an address in a private network"),
    (re.compile(r"^(?:<{7}|>{7}) "), "a merge marker"),
    (re.compile(r"\b(?:TO" r"DO|FIX" r"ME|X" r"XX|HA" r"CK)\b"), "a mark of unfinished work"),
    (re.compile(r"[ \t]+$"), "white space at the end of the line"),
]
GENERATED = (".json", ".jsonl", ".abi", ".svg", ".csv", ".diff", ".patch")


def tracked(root):
    listed = subprocess.run(["git", "-C", str(root), "ls-files"], capture_output=True, text=True)
    if listed.returncode == 0 and listed.stdout:
        return [root / name for name in listed.stdout.splitlines()]
    return [p for p in root.rglob("*") if p.is_file() and ".git" not in p.parts and not p.relative_to(root).parts[0].startswith("build")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root.resolve()
    offences = 0
    files = tracked(root)
    for name in sorted({f.relative_to(root).parts[0] for f in files} - ROOT):
        print(f"{name}: does not belong in the root")
        offences += 1
    for path in files:
        if not path.is_file():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if path.suffix in GENERATED:
            patterns = PATTERNS[:4]
        else:
            patterns = PATTERNS
        for number, line in enumerate(text.splitlines(), 1):
            for pattern, what in patterns:
                match = pattern.search(line)
                if match:
                    print(f"{path.relative_to(root)}:{number}: {what}: {match.group(0)!r}")
                    offences += 1
    print(f"words: {len(files)} files, {offences} offences")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
