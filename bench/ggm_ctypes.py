#!/usr/bin/env python3
"""libggm from Python by ctypes, for the scripts of the bench: structs and constants are read out of ggm.h, so they cannot drift from it.

    ggm = Ggm("build/src/libggm.so", backend="host")
    problem = ggm.struct("ggm_grouped_gemm_problem", groups=4, m=100, n=64, k=32, ...)
    tensors = ggm.struct("ggm_grouped_gemm_tensors", a=..., b=..., d=..., ...)
    call = ggm.call("ggm_grouped_gemm", problem, tensors, workspace=lambda size: ...)
    call(stream)
Pointers are plain addresses. A status that is not success raises GgmError with the library's text.

Usage: bench/ggm_ctypes.py --self-check LIBRARY      small products and a layer with gradients on the host backend, exact in integers
"""
import argparse
import array
import ctypes
import pathlib
import re
import sys

HEADER = pathlib.Path(__file__).resolve().parents[1] / "include" / "ggm" / "ggm.h"
TYPES = {"uint32_t": ctypes.c_uint32, "int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64, "double": ctypes.c_double}


class GgmError(Exception):
    pass


# ---- the header ----------------------------------------------------------------------------------------------------------

def parse_constants(text):
    """Every value of an enum and every GGM_ define that is a plain number."""
    found = {}
    for body in re.findall(r"\benum\s*\{(.*?)\}", text, re.S):
        found.update((name, int(value)) for name, value in re.findall(r"(GGM_\w+)\s*=\s*(-?\d+)", body))
    found.update((name, int(value)) for name, value in re.findall(r"#define\s+(GGM_\w+)\s+\(?(?:\(int64_t\))?(-?\d+)\)?\s*$", text, re.M))
    return found


def parse_fields(body):
    fields = []
    for declaration in filter(None, (part.strip() for part in body.split(";"))):
        function = re.search(r"\(\*(\w+)\)", declaration)
        if function:
            fields.append((function.group(1), ctypes.c_void_p))
        elif "*" in declaration:
            fields.append((re.search(r"(\w+)$", declaration).group(1), ctypes.c_void_p))
        else:
            kind, names = declaration.split(None, 1)
            fields += [(name.strip(), TYPES[kind]) for name in names.split(",")]
    return fields


def parse_structs(text):
    return {name: type(name, (ctypes.Structure,), {"_fields_": parse_fields(body)})
            for name, body in re.findall(r"typedef struct (ggm_\w+) \{(.*?)\} ggm_\w+_t;", text, re.S)}


# ---- the library ---------------------------------------------------------------------------------------------------------

class Call:
    """One operation made ready: the structs stay alive, `call(stream)` puts it on the stream."""

    def __init__(self, ggm, operation, problem, tensors, workspace):
        self.problem, self.tensors, self.ggm, self.operation = problem, tensors, ggm, operation
        self.bytes = ggm.workspace_bytes(operation, problem)
        self.workspace = workspace(self.bytes) if self.bytes else 0
        self.function = getattr(ggm.loaded, operation)

    def __call__(self, stream=0):
        self.ggm.check(self.function(self.ggm.handle, ctypes.byref(self.problem), ctypes.byref(self.tensors), ctypes.c_void_p(self.workspace),
                                     ctypes.c_size_t(self.bytes), ctypes.c_void_p(stream)), self.operation)


class Ggm:
    def __init__(self, path, backend="cuda", header=HEADER):
        text = re.sub(r"/\*.*?\*/", " ", pathlib.Path(header).read_text(encoding="utf-8"), flags=re.S)
        self.constants, self.structs = parse_constants(text), parse_structs(text)
        self.loaded = ctypes.CDLL(str(path))
        for name in ("ggm_status_string", "ggm_last_error", "ggm_build_info"):
            getattr(self.loaded, name).restype = ctypes.c_char_p
        self.handle = ctypes.c_void_p()
        params = self.struct("ggm_create_params", backend=self["GGM_BACKEND_" + backend.upper()])
        self.check(self.loaded.ggm_create(ctypes.byref(params), ctypes.byref(self.handle)), "ggm_create")

    def __getitem__(self, constant):
        return self.constants[constant]

    def close(self):
        self.check(self.loaded.ggm_destroy(self.handle), "ggm_destroy")

    def struct(self, name, **fields):
        kind = self.structs[name]
        unknown = set(fields) - {field for field, _ in kind._fields_}
        if unknown:
            raise GgmError(f"{name} has no {', '.join(sorted(unknown))}")
        return kind(struct_size=ctypes.sizeof(kind), **fields)

    def check(self, status, what):
        if status != 0:
            name = self.loaded.ggm_status_string(ctypes.c_int32(status)).decode()
            raise GgmError(f"{what}: {name}: {self.loaded.ggm_last_error().decode()}")

    def workspace_bytes(self, operation, problem):
        size = ctypes.c_size_t()
        self.check(getattr(self.loaded, operation + "_workspace_size")(self.handle, ctypes.byref(problem), ctypes.byref(size)), operation)
        return size.value

    def call(self, operation, problem, tensors, workspace):
        """`workspace(bytes)` gives the address of so much memory; its owner keeps it as long as the call is used."""
        return Call(self, operation, problem, tensors, workspace)

    # The problems of the bench.
    def grouped_problem(self, groups, m, n, k, kind, out=None, ends=True):
        """Contiguous rows, weights [groups, n, k]."""
        return self.struct("ggm_grouped_gemm_problem", groups=groups, m=m, n=n, k=k, layout=self["GGM_LAYOUT_CONTIGUOUS"],
                           group_form=self["GGM_GROUPS_ENDS" if ends else "GGM_GROUPS_OFFSETS"], index_type=self["GGM_INDEX_INT32"],
                           b_order=self["GGM_ORDER_NK"], a_type=self["GGM_TYPE_" + kind], b_type=self["GGM_TYPE_" + kind],
                           d_type=self["GGM_TYPE_" + (out or kind)])

    def gradient_problem(self, groups, rows, n, k, kind):
        """Variable K: [groups, n, k] from [rows, n] and [rows, k]."""
        return self.struct("ggm_grouped_gemm_problem", groups=groups, m=n, n=k, k=rows, layout=self["GGM_LAYOUT_VARIABLE_K"],
                           group_form=self["GGM_GROUPS_ENDS"], index_type=self["GGM_INDEX_INT32"], a_type=self["GGM_TYPE_" + kind],
                           b_type=self["GGM_TYPE_" + kind])

    def moe_problem(self, tokens, top_k, experts, n, k, kind, gradients=0):
        """From int32 expert ids, float32 routing weights, weights [experts, n, k]."""
        return self.struct("ggm_moe_problem", tokens=tokens, top_k=top_k, experts=experts, in_features=k, out_features=n,
                           id_type=self["GGM_INDEX_INT32"], routing_weight_type=self["GGM_TYPE_FLOAT32"], x_type=self["GGM_TYPE_" + kind],
                           weight_type=self["GGM_TYPE_" + kind], weight_order=self["GGM_ORDER_NK"], gradients=gradients)

    def all_gradients(self):
        return self["GGM_GRADIENT_X"] | self["GGM_GRADIENT_WEIGHT"] | self["GGM_GRADIENT_ROUTING_WEIGHTS"]


# ---- a check on the host -------------------------------------------------------------------------------------------------

class Memory:
    """Host arrays that live as long as this object; their addresses are what the library gets."""

    def __init__(self):
        self.kept = []

    def floats(self, values):
        self.kept.append(array.array("f", values))
        return self.kept[-1]

    def integers(self, values):
        self.kept.append(array.array("i", values))
        return self.kept[-1]

    def bfloats(self, values):
        """Values of at most eight significant bits, so that the upper half of the float32 is all of them."""
        bits = array.array("I", array.array("f", values).tobytes())
        self.kept.append(array.array("H", [b >> 16 for b in bits]))
        return self.kept[-1]

    def workspace(self, size):
        self.kept.append(ctypes.create_string_buffer(size + 256))
        return (ctypes.addressof(self.kept[-1]) + 255) // 256 * 256


def address(data):
    return data.buffer_info()[0]


def small(count, seed):
    """Integers of -4 .. 4 with none of them rare."""
    return [(seed + i * i * 7 + i * 13) % 9 - 4 for i in range(count)]


def expect(what, got, want):
    if list(got) != [float(v) for v in want]:
        raise GgmError(f"{what}: {list(got)[:8]} .., expected {list(want)[:8]} ..")
    print(f"{what}: {len(want)} elements exact")


def check_products(ggm):
    memory, ends, n, k = Memory(), [3, 3, 8], 5, 6
    group, rows = [0, 0, 0, 2, 2, 2, 2, 2], 8
    x, w, g = small(rows * k, 1), small(3 * n * k, 2), small(rows * n, 3)
    want = [sum(x[r * k + i] * w[(group[r] * n + c) * k + i] for i in range(k)) for r in range(rows) for c in range(n)]
    for kind, store in (("FLOAT32", memory.floats), ("BFLOAT16", memory.bfloats)):
        out = memory.floats([float("nan")] * (rows * n))
        tensors = ggm.struct("ggm_grouped_gemm_tensors", group_offsets=address(memory.integers(ends)), a=address(store(x)), b=address(store(w)),
                             d=address(out))
        ggm.call("ggm_grouped_gemm", ggm.grouped_problem(3, rows, n, k, kind, "FLOAT32"), tensors, memory.workspace)()
        expect(f"contiguous product of {kind}", out, want)
    out = memory.floats([float("nan")] * (3 * n * k))
    tensors = ggm.struct("ggm_grouped_gemm_tensors", group_offsets=address(memory.integers(ends)), a=address(memory.floats(g)),
                         b=address(memory.floats(x)), d=address(out))
    ggm.call("ggm_grouped_gemm", ggm.gradient_problem(3, rows, n, k, "FLOAT32"), tensors, memory.workspace)()
    expect("variable K", out, [sum(g[r * n + c] * x[r * k + i] for r in range(rows) if group[r] == e)
                               for e in range(3) for c in range(n) for i in range(k)])


def check_layer(ggm):
    memory, tokens, top_k, experts, n, k = Memory(), 5, 2, 4, 6, 7
    ids = [0, 2, 2, 3, 3, 0, 2, 0, 0, 3]
    factors = [0.5, 2, 1, 0.25, 4, 1, 0.5, 0.5, 2, 1]
    x, w, dy = small(tokens * k, 4), small(experts * n * k, 5), small(tokens * n, 6)
    product = {a: [sum(x[a // top_k * k + i] * w[(e * n + c) * k + i] for i in range(k)) for c in range(n)] for a, e in enumerate(ids)}
    back = {a: [sum(dy[a // top_k * n + c] * w[(e * n + c) * k + i] for c in range(n)) for i in range(k)] for a, e in enumerate(ids)}
    y = memory.floats([float("nan")] * (tokens * n))
    given = {"ids": address(memory.integers(ids)), "routing_weights": address(memory.floats(factors)), "x": address(memory.floats(x)),
             "weight": address(memory.floats(w))}
    problem = ggm.moe_problem(tokens, top_k, experts, n, k, "FLOAT32", ggm.all_gradients())
    ggm.call("ggm_moe_forward", problem, ggm.struct("ggm_moe_forward_tensors", y=address(y), **given), memory.workspace)()
    slots = [range(t * top_k, (t + 1) * top_k) for t in range(tokens)]
    expect("moe_forward", y, [sum(factors[a] * product[a][c] for a in slots[t]) for t in range(tokens) for c in range(n)])
    dx, dw, df = (memory.floats([float("nan")] * count) for count in (tokens * k, experts * n * k, tokens * top_k))
    tensors = ggm.struct("ggm_moe_backward_tensors", dy=address(memory.floats(dy)), dx=address(dx), d_weight=address(dw),
                         d_routing_weights=address(df), **given)
    ggm.call("ggm_moe_backward", problem, tensors, memory.workspace)()
    expect("dx", dx, [sum(factors[a] * back[a][i] for a in slots[t]) for t in range(tokens) for i in range(k)])
    expect("d_weight", dw, [sum(factors[a] * dy[a // top_k * n + c] * x[a // top_k * k + i] for a in range(len(ids)) if ids[a] == e)
                            for e in range(experts) for c in range(n) for i in range(k)])
    expect("d_routing_weights", df, [sum(back[a][i] * x[a // top_k * k + i] for i in range(k)) for a in range(len(ids))])


def check_refusal(ggm):
    try:
        ggm.workspace_bytes("ggm_grouped_gemm", ggm.struct("ggm_grouped_gemm_problem", groups=-1))
    except GgmError as error:
        if "groups" in str(error):
            print(f"a refusal is told: {error}")
            return
    raise GgmError("a problem with -1 groups was not refused with its name")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--self-check", type=pathlib.Path, metavar="LIBRARY", required=True)
    ggm = Ggm(parser.parse_args().self_check.resolve(), backend="host")
    check_products(ggm)
    check_layer(ggm)
    check_refusal(ggm)
    ggm.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
