#!/usr/bin/env python3
"""The exported symbols of libggm.so are those of cmake/ggm.map and those of the prototypes of ggm.h, and it needs no CUDA library.

Usage: tests/abi/check_symbols.py LIBRARY
"""
import pathlib
import re
import subprocess
import sys

from header import Header

MAP = pathlib.Path(__file__).resolve().parents[2] / "cmake" / "ggm.map"
# What a Debian machine without CUDA has, and nothing else.
NEEDED = re.compile(r"^(libstdc\+\+|libm|libgcc_s|libc|libpthread|libdl|librt|ld-linux-x86-64|libasan|libubsan|libtsan)\.so")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    library = sys.argv[1]
    exported = {line.split()[-1].split("@")[0] for line in output("nm", "-D", "--defined-only", library).splitlines()}
    listed = set(re.findall(r"^\s+(\w+);", MAP.read_text(encoding="utf-8").split("local:")[0], flags=re.M))
    declared = {name for name, _ in Header().functions()}

    problems = []
    for a_name, a, b_name, b in (("library", exported, "map", listed), ("map", listed, "library", exported),
                                 ("map", listed, "header", declared), ("header", declared, "map", listed)):
        problems += [f"{symbol}: in the {a_name}, not in the {b_name}" for symbol in sorted(a - b)]

    dynamic = output("readelf", "-dW", library)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    problems += [f"needs {name}, which a machine without CUDA may lack" for name in needed if not NEEDED.match(name)]
    soname = re.findall(r"\(SONAME\).*\[(.*)\]", dynamic)
    version = (MAP.parents[1] / "include" / "ggm" / "version.h").read_text(encoding="utf-8")
    major, minor = (re.search(rf"GGM_VERSION_{part} (\d+)", version).group(1) for part in ("MAJOR", "MINOR"))
    if soname != [f"libggm.so.{major}.{minor}"]:
        problems.append(f"SONAME is {soname}, not libggm.so.{major}.{minor}")

    print("\n".join(problems), end="\n" if problems else "")
    print(f"symbols: {len(exported)} exported, {len(listed)} in the map, {len(declared)} in the header; needs {' '.join(needed)}; "
          f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
