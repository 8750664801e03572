#!/usr/bin/env python3
"""Checks the include structure of src/.

- A file includes only layers above its own in LAYERS and its own layer; host and cuda do not see each other.
- Only src/cuda may name CUDA headers, and in it only src/cuda/routing may name CUB.
- No folder includes a neighbour that includes it back, directly or through others; at every level, with what lies below them. A
  folder and its own sub-folders may know each other: it wires them, and they read the plain data that lies in it.

Usage: cmake/check_layers.py [--root DIR]. Prints each offence as file:line and exits with 1 if there is one.
"""
import argparse
import pathlib
import re
import sys

LAYERS = {
    "base": {"base"},
    "problem": {"base", "problem"},
    "plan": {"base", "problem", "plan"},
    "host": {"base", "problem", "plan", "host"},
    "cuda": {"base", "problem", "plan", "cuda"},
    "api": {"base", "problem", "plan", "host", "cuda", "api"},
}
SUFFIXES = {".h", ".hpp", ".c", ".cpp", ".cu", ".cuh", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CUDA_HEADER = re.compile(r"^(cuda|cuda_.*|cooperative_groups.*|mma|crt/.*|cuda/.*|device_launch_parameters)(\.h|\.hpp)?$|^cuda/|^nv/|^thrust/")
CUB_HEADER = re.compile(r"^(cub|thrust)/")


def includes(path):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1) == '"', match.group(2)


def resolve(path, name, src):
    """The file under src/ that a quoted include means, or None."""
    for base in (path.parent, src):
        candidate = (base / name).resolve()
        if candidate.is_file() and src in candidate.parents:
            return candidate
    return None


def check_file(path, src, edges):
    relative = path.relative_to(src)
    layer = relative.parts[0]
    if layer not in LAYERS:
        yield 1, f"src/{layer} is not a layer; known: {', '.join(LAYERS)}"
        return
    for number, quoted, name in includes(path):
        outside = not quoted or resolve(path, name, src) is None
        if outside and CUB_HEADER.match(name) and relative.parts[:2] != ("cuda", "routing"):
            yield number, f"includes {name}: only src/cuda/routing may include CUB"
        elif outside and layer != "cuda" and CUDA_HEADER.match(name):
            yield number, f"includes {name}: {layer} is free of CUDA headers"
        if not quoted or name.startswith("ggm/"):
            continue
        target = resolve(path, name, src)
        if target is None:
            yield number, f'includes "{name}", which is not a file of src/'
            continue
        target_layer = target.relative_to(src).parts[0]
        if target_layer not in LAYERS[layer]:
            yield number, f"includes {name}: {layer} may include {', '.join(sorted(LAYERS[layer]))} only"
        # Only headers make a cycle: a .cpp beside them is included by nobody.
        pair = neighbours(path.parent.relative_to(src), target.parent.relative_to(src))
        if pair and path.suffix in (".h", ".hpp", ".cuh", ".inc"):
            edges.setdefault(pair[0], {}).setdefault(pair[1], f"{relative}:{number}")


def neighbours(a, b):
    """The two folders side by side that hold a and b, or None when one of a and b lies in the other."""
    for i, (x, y) in enumerate(zip(a.parts, b.parts)):
        if x != y:
            return pathlib.PurePath(*a.parts[: i + 1]), pathlib.PurePath(*b.parts[: i + 1])
    return None


def find_cycle(edges):
    """One cycle of folders as a list, or None: a depth-first walk that keeps its path."""
    done = set()

    def walk(folder, path):
        if folder in path:
            return path[path.index(folder):] + [folder]
        if folder in done:
            return None
        for target in edges.get(folder, {}):
            cycle = walk(target, path + [folder])
            if cycle:
                return cycle
        done.add(folder)
        return None

    for folder in edges:
        cycle = walk(folder, [])
        if cycle:
            return cycle
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    src = (parser.parse_args().root / "src").resolve()
    edges, offences, files = {}, 0, 0
    for path in sorted(src.rglob("*")):
        if path.suffix not in SUFFIXES:
            continue
        files += 1
        for number, text in check_file(path, src, edges):
            print(f"src/{path.relative_to(src)}:{number}: {text}")
            offences += 1
    cycle = find_cycle(edges)
    if cycle:
        offences += 1
        print("folders include each other: " + " -> ".join(str(f) for f in cycle))
        for a, b in zip(cycle, cycle[1:]):
            print(f"  {a} -> {b} at src/{edges[a][b]}")
    if files == 0:
        print(f"no source files under {src}")
        return 1
    print(f"layers: {files} files, {offences} offences")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
