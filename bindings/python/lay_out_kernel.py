#!/usr/bin/env python3
"""Lays the package out as the loader `kernels` of Hugging Face wants it: lay_out_kernel.py LIBRARY FOLDER

FOLDER/build/torch-cuda, or torch-cpu for a library without the CUDA backend, is written: the package ggm with the library inside, an
__init__.py with what ggm.torch has, metadata.json. Both may lie in one folder. `kernels.get_local_kernel(FOLDER)` loads it."""
import argparse
import hashlib
import json
import pathlib
import re
import shutil
import sys

HERE = pathlib.Path(__file__).resolve().parent
INIT = '''"""libggm: grouped GEMM for Mixture-of-Experts layers. moe and grouped_gemm are those of ggm.torch; ggm is the whole package."""
from . import ggm
from .ggm.torch import grouped_gemm, moe

__all__ = ["ggm", "grouped_gemm", "moe"]
'''


def cuda_architectures(build_info):
    """None: a library without the CUDA backend. Else the architectures in the words of kernels, none where they are not plain numbers."""
    found = re.search(r"CUDA [\d.]+ \((.*?)\)", build_info)
    if not found:
        return None
    result = []
    for word in found.group(1).split(";"):  # as CMake has them: 80, 86-real, 90a-real
        match = re.fullmatch(r"(\d+)(\d)([af]?)(-real|-virtual)?", word)
        if not match:
            return []
        major, minor, suffix, kind = match.groups()
        result.append(f"{major}.{minor}{suffix}" + ("" if suffix or kind == "-real" else "+PTX"))
    return result


def metadata(library, files):
    """library: as ggm.raw.load returns it. files: {path: bytes}, of which the id is made, as a process may load several versions."""
    architectures = cuda_architectures(library.ggm_build_info().decode())
    backend = "cpu" if architectures is None else "cuda"
    digest = hashlib.sha256(b"".join(path.encode() + b"\0" + files[path] for path in sorted(files))).hexdigest()
    return {
        "name": "ggm",
        "id": f"_ggm_{backend}_{digest[:10]}",
        # Changes with the interface: while the version is 0.x that is with each minor one.
        "version": library.ggm_version() // 100,
        "license": "apache-2.0",
        "python-depends": [],
        "backend": {"type": backend, **({"archs": architectures} if architectures else {})},
    }


def lay_out(path, folder):
    """The folder of the variant, which must not exist yet."""
    sys.path.insert(0, str(HERE))
    from ggm.raw import load
    library = load(pathlib.Path(path).resolve())  # refuses what is no libggm of this version
    package = sorted((HERE / "ggm").rglob("*.py"))
    files = {str(file.relative_to(HERE)): file.read_bytes() for file in package}
    files["ggm/lib/libggm.so"] = pathlib.Path(path).read_bytes()
    files["__init__.py"] = INIT.encode()
    described = metadata(library, files)
    files["metadata.json"] = (json.dumps(described, indent=2) + "\n").encode()
    variant = pathlib.Path(folder) / "build" / f"torch-{described['backend']['type']}"
    variant.mkdir(parents=True)
    for name, content in files.items():
        (variant / name).parent.mkdir(parents=True, exist_ok=True)
        (variant / name).write_bytes(content)
    shutil.copymode(path, variant / "ggm/lib/libggm.so")
    return variant


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("path", metavar="LIBRARY", help="a libggm.so")
    parser.add_argument("folder", metavar="FOLDER", help="the kernel's repository")
    arguments = parser.parse_args()
    try:
        print(lay_out(arguments.path, arguments.folder))
    except FileExistsError as error:
        sys.exit(f"lay_out_kernel.py: {error.filename} is there already; remove it first")
    except (OSError, ImportError) as error:
        sys.exit(f"lay_out_kernel.py: {error}")


if __name__ == "__main__":
    main()
