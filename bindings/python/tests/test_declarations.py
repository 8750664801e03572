"""ggm.raw says what include/ggm/ggm.h says: constants, layout and type of every field, every prototype, the version."""
import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import ggm
from ggm import raw
from ggm.raw import functions

INCLUDE = pathlib.Path(__file__).resolve().parents[3] / "include"
COMPILER = os.environ.get("CC", "cc")
FIELD_TYPES = {ctypes.c_int32: "int32", ctypes.c_uint32: "uint32", ctypes.c_int64: "int64", ctypes.c_double: "double"}
GENERIC = '_Generic((x), int32_t: "int32", uint32_t: "uint32", int64_t: "int64", double: "double", default: "pointer")'


def plain(text):
    """The header without comments and without what only a compiler needs."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r"\bGGM_DEV\b|\bconst\b", " ", text)


def header_constants(text):
    names = re.findall(r"^\s*#define (GGM_(?:MAX_\w+|WORKSPACE_ALIGNMENT|STRIDE_SHARED))\b", text, flags=re.M)
    for body in re.findall(r"\benum\s*\{(.*?)\}", text, flags=re.S):
        names += re.findall(r"\b(GGM_\w+)\s*=", body)
    return names


def header_structs(text):
    """{name: number of semicolon-separated declarations, counting names after commas}"""
    found = {}
    for body, name in re.findall(r"typedef struct \w+\s*\{(.*?)\}\s*(\w+)\s*;", text, flags=re.S):
        outside = re.sub(r"\([^()]*\)(?=\s*;)", "", body)  # parameter lists have commas too
        found[name] = sum(declaration.count(",") + 1 for declaration in outside.split(";") if declaration.strip())
    return found


def header_prototypes(text):
    """{function: (type of the result, [types of the parameters])} as C writes them, without blanks."""
    found = {}
    for result, name, parameters in re.findall(r"GGM_API\s+([\w\s]+?[\s*]+)(ggm_\w+)\s*\(([^)]*)\)\s*;", text, flags=re.S):
        types = []
        for parameter in parameters.split(","):
            if parameter.strip() != "void":
                types.append(re.sub(r"\s", "", re.sub(r"\w+\s*$", "", parameter)))
        found[name] = (re.sub(r"\s", "", result), types)
    return found


def ctype_of(text):
    plain_types = {
        "ggm_status_t": ctypes.c_int32, "int32_t": ctypes.c_int32, "size_t": ctypes.c_size_t, "char*": ctypes.c_char_p,
        "void*": ctypes.c_void_p, "ggm_handle_t": ctypes.c_void_p, "ggm_stream_t": ctypes.c_void_p,
        "ggm_handle_t*": ctypes.POINTER(ctypes.c_void_p), "size_t*": ctypes.POINTER(ctypes.c_size_t),
    }
    return plain_types.get(text) or ctypes.POINTER(getattr(raw, text.rstrip("*")))


def prototype_faults(text, declared):
    faults = []
    wanted = header_prototypes(text)
    for name in sorted(set(wanted) | set(declared)):
        if name not in wanted:
            faults.append(f"{name}: not in the header")
        elif name not in declared:
            faults.append(f"{name}: not declared")
        elif declared[name] != (ctype_of(wanted[name][0]), [ctype_of(t) for t in wanted[name][1]]):
            faults.append(f"{name}: declared as {declared[name]}, the header says {wanted[name]}")
    return faults


def structs_of_raw():
    return {name: kind for name, kind in vars(raw).items()
            if isinstance(kind, type) and issubclass(kind, raw.Struct) and kind is not raw.Struct}


def field_line(name, field, kind):
    what = getattr(kind, field)
    type_name = FIELD_TYPES.get(dict(kind._fields_)[field], "pointer")
    return f"{name}.{field} {what.offset} {what.size} {type_name}"


def declared_lines():
    lines = []
    for name, kind in sorted(structs_of_raw().items()):
        lines.append(f"{name} {ctypes.sizeof(kind)}")
        lines += [field_line(name, field, kind) for field, _ in kind._fields_]
    return lines


def program(constants):
    lines = ['#include "ggm/ggm.h"', "#include <stdio.h>", f"#define TYPE(x) {GENERIC}", "int main(void) {"]
    for name, kind in sorted(structs_of_raw().items()):
        lines.append(f'  printf("{name} %zu\\n", sizeof({name}));')
        for field, _ in kind._fields_:
            lines.append(f'  printf("{name}.{field} %zu %zu %s\\n", offsetof({name}, {field}), sizeof((({name}*)0)->{field}), '
                         f"TYPE((({name}*)0)->{field}));")
    lines += [f'  printf("{name} = %lld\\n", (long long){name});' for name in constants]
    return "\n".join(lines + ["  return 0;", "}", ""])


def compiled_lines(constants):
    with tempfile.TemporaryDirectory() as folder:
        source, binary = pathlib.Path(folder) / "layout.c", pathlib.Path(folder) / "layout"
        source.write_text(program(constants), encoding="utf-8")
        subprocess.run([COMPILER, "-std=c11", "-I", str(INCLUDE), str(source), "-o", str(binary)], check=True)
        return subprocess.run([str(binary)], check=True, capture_output=True, text=True).stdout.splitlines()


class Declarations(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.text = plain((INCLUDE / "ggm" / "ggm.h").read_text(encoding="utf-8"))
        cls.constants = header_constants(cls.text)

    def test_the_header_was_read(self):
        self.assertGreaterEqual(len(header_prototypes(self.text)), 24)
        self.assertGreaterEqual(len(header_structs(self.text)), 14)
        self.assertGreaterEqual(len(self.constants), 80)

    def test_names_are_the_headers(self):
        declared = {name for name in vars(raw) if name.startswith("GGM_")}
        self.assertEqual(declared, set(self.constants))
        self.assertEqual({name: len(kind._fields_) for name, kind in structs_of_raw().items()}, header_structs(self.text))

    def test_layout_types_and_values_are_the_compilers(self):
        if shutil.which(COMPILER) is None:
            self.skipTest(f"there is no C compiler {COMPILER} (set CC)")
        wanted = compiled_lines(self.constants)
        self.assertEqual(declared_lines() + [f"{name} = {getattr(raw, name)}" for name in self.constants], wanted)

    def test_prototypes_are_the_headers(self):
        self.assertEqual(prototype_faults(self.text, functions.PROTOTYPES), [])

    def test_the_comparison_of_prototypes_can_fail(self):
        added = self.text + "GGM_API ggm_status_t ggm_new(ggm_handle_t handle);"
        self.assertEqual(prototype_faults(added, functions.PROTOTYPES), ["ggm_new: not declared"])
        changed = self.text.replace("ggm_destroy(ggm_handle_t handle)", "ggm_destroy(size_t handle)")
        self.assertEqual(len(prototype_faults(changed, functions.PROTOTYPES)), 1)
        without = {name: types for name, types in functions.PROTOTYPES.items() if name != "ggm_route"}
        self.assertEqual(prototype_faults(self.text, without), ["ggm_route: not declared"])

    def test_each_operation_has_a_function_and_a_query(self):
        for operation in functions.OPERATIONS:
            name = operation[len("ggm_"):]
            self.assertTrue(callable(getattr(ggm, name)), name)
            self.assertTrue(callable(getattr(ggm, name + "_workspace_size")), name)

    def test_each_choice_of_the_header_is_in_an_enumeration(self):
        prefixes = {"GGM_STATUS_": ggm.Status, "GGM_TYPE_": ggm.Type, "GGM_INDEX_": ggm.Index, "GGM_ORDER_": ggm.Order,
                    "GGM_COMPUTE_": ggm.Compute, "GGM_LAYOUT_": ggm.Layout, "GGM_GROUPS_": ggm.GroupForm, "GGM_COMBINE_": ggm.Combine,
                    "GGM_ROWS_": ggm.Rows, "GGM_BACKEND_": ggm.Backend, "GGM_KERNELS_": ggm.Kernels, "GGM_LOG_": ggm.LogLevel,
                    "GGM_GRADIENT_": ggm.Gradient, "GGM_FLAG_": ggm.Flag, "GGM_FAULT_": ggm.Fault}
        plain_names = {"GGM_FAULT_WORDS", "GGM_CREATE_CURRENT_DEVICE", "GGM_STRIDE_SHARED", "GGM_WORKSPACE_ALIGNMENT"}
        for name in self.constants:
            if name in plain_names or name.startswith("GGM_MAX_"):
                continue
            prefix = next(p for p in prefixes if name.startswith(p))
            self.assertEqual(prefixes[prefix][name[len(prefix):]], getattr(raw, name), name)

    def test_the_version_is_the_headers(self):
        text = (INCLUDE / "ggm" / "version.h").read_text(encoding="utf-8")
        parts = [re.search(rf"#define GGM_VERSION_{part} (\d+)", text).group(1) for part in ("MAJOR", "MINOR", "PATCH")]
        self.assertEqual(ggm.__version__, ".".join(parts))
        self.assertEqual([str(functions.MAJOR), str(functions.MINOR)], parts[:2])
        self.assertEqual(ggm.loaded_version(), tuple(map(int, parts)))


if __name__ == "__main__":
    unittest.main()
