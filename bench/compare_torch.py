#!/usr/bin/env python3
"""libggm beside torch in one process: values and times, recorded in bench/results/torch-h200.jsonl.

Usage: bench/compare_torch.py LIBRARY [--output FILE] [--manifest FILE] [--operations LIST] [--classes LIST] [--workloads LIST]
                              [--rounds N] [--seconds S]
       bench/compare_torch.py LIBRARY --host      values alone, small, on the host backend and torch's CPU tensors
Needs torch 2.11 (torch._grouped_mm).

Values: bfloat16 products with torch._grouped_mm, by the sums behind their roundings (torch_layer.py), relative Frobenius at most 2e-5; a float32
layer forward and backward with torch.autograd of gather, product and scatter, at most 1e-5.
Times: the cells of peers-h200.csv at train and prefill, the library and torch in a new random order each round, both replayed from CUDA graphs where
torch lets itself be captured, medians of 20. `ratio` is torch's time over the library's. As for ggm_bench, sources must be committed or have
a manifest. Exit: 0 all well, 1 a value is off or a cell failed, 2 refused.
"""
import argparse
import datetime
import json
import math
import pathlib
import random
import statistics
import sys
import time

import torch

import torch_layer
from cells import BENCH, peer_cells, peers, size_class, workloads
from ggm_ctypes import Ggm, GgmError
from record_bench import git_manifest
from record_tests import Refused, check_manifest, ids
from summary import print_torch

OPERATIONS = ("grouped", "grouped_k", "moe_forward", "moe_backward")
PRODUCT_LIMIT = 2e-5
LAYER_LIMIT = 1e-5
PROGRAM_LIMIT = 1e-2  # of bfloat16, whose roundings are 2e-3 each
WARM_ROUNDS = 2
SHORTEST_PIECE_MS = 2.0


# ---- the library on torch's tensors --------------------------------------------------------------------------------------

class OnTensors:
    """Calls of the library whose pointers are tensors; holds what the calls use."""

    def __init__(self, ggm, device):
        self.ggm, self.device = ggm, torch.device(device)

    def ready(self, operation, problem, tensors, **pointers):
        """A function that puts the call on torch's current stream."""
        kept = list(pointers.values())

        def workspace(size):
            kept.append(torch.empty(size + 256, dtype=torch.uint8, device=self.device))
            return (kept[-1].data_ptr() + 255) // 256 * 256
        filled = self.ggm.struct(tensors, **{name: tensor.data_ptr() for name, tensor in pointers.items()})
        call = self.ggm.call(operation, problem, filled, workspace)
        call.kept = kept
        if self.device.type == "cpu":
            return lambda: call(0)
        return lambda: call(torch.cuda.current_stream().cuda_stream)

    def grouped(self, x, weight, ends, out):
        kinds = {torch.float32: "FLOAT32", torch.bfloat16: "BFLOAT16"}
        experts, n, k = weight.shape
        problem = self.ggm.grouped_problem(experts, x.shape[0], n, k, kinds[x.dtype], kinds[out.dtype])
        return self.ready("ggm_grouped_gemm", problem, "ggm_grouped_gemm_tensors", group_offsets=ends, a=x, b=weight, d=out)

    def weight_gradient(self, g, x, ends, out):
        problem = self.ggm.gradient_problem(ends.shape[0], x.shape[0], g.shape[1], x.shape[1], "BFLOAT16")
        return self.ready("ggm_grouped_gemm", problem, "ggm_grouped_gemm_tensors", group_offsets=ends, a=g, b=x, d=out)

    def moe_problem(self, x, weight, chosen, gradients=0):
        kind = "FLOAT32" if x.dtype == torch.float32 else "BFLOAT16"
        return self.ggm.moe_problem(*chosen.shape, *weight.shape, kind, gradients)

    def moe_forward(self, x, weight, chosen, factors, y):
        return self.ready("ggm_moe_forward", self.moe_problem(x, weight, chosen), "ggm_moe_forward_tensors", ids=chosen,
                          routing_weights=factors, x=x, weight=weight, y=y)

    def moe_backward(self, x, weight, chosen, factors, dy, dx, d_weight, d_factors):
        problem = self.moe_problem(x, weight, chosen, self.ggm.all_gradients())
        return self.ready("ggm_moe_backward", problem, "ggm_moe_backward_tensors", ids=chosen, routing_weights=factors, x=x, weight=weight, dy=dy,
                          dx=dx, d_weight=d_weight, d_routing_weights=d_factors)


# ---- data ----------------------------------------------------------------------------------------------------------------

def draw_ids(tokens, top_k, experts, routing, device):
    """top_k distinct experts a token: the largest of a score plus Gumbel noise, as the rules of workloads.json say."""
    noise = -torch.log(-torch.log(torch.rand(tokens, experts, device=device).clamp(1e-7, 1 - 1e-7)))
    if routing == "zipf":
        noise -= torch.log(1.0 + torch.randperm(experts, device=device).float())
    return noise.topk(top_k, dim=1).indices.to(torch.int32).contiguous()


def normals(*shape, device, dtype=torch.bfloat16, scale=1.0):
    return torch.randn(*shape, device=device, dtype=dtype).mul_(scale)


def draw_layer(tokens, top_k, experts, n, k, device, dtype, routing="uniform"):
    chosen = draw_ids(tokens, top_k, experts, routing, device)
    factors = torch.softmax(torch.randn(tokens, top_k, device=device), dim=1).contiguous()
    return normals(tokens, k, device=device, dtype=dtype), normals(experts, n, k, device=device, dtype=dtype, scale=k ** -0.5), chosen, factors


# ---- values --------------------------------------------------------------------------------------------------------------

def product_values(on, experts, rows, n, k):
    """[(what, error, limit)] of one contiguous bfloat16 product with ragged groups."""
    ends = torch.randint(0, rows + 1, (experts,), device=on.device).sort().values.to(torch.int32)
    ends[-1] = rows
    x = normals(rows, k, device=on.device)
    weight = normals(experts, n, k, device=on.device, scale=k ** -0.5)
    out, sums = (torch.full((rows, n), float("nan"), dtype=dtype, device=on.device) for dtype in (torch.bfloat16, torch.float32))
    on.grouped(x, weight, ends, out)()
    on.grouped(x, weight, ends, sums)()
    theirs = torch_layer.grouped(x, weight, ends)
    shape = f"grouped {experts} x [{n},{k}], {rows} rows"
    other = (out.view(torch.int16) != sums.to(torch.bfloat16).view(torch.int16)).double().mean().item()
    return [(shape + ", bf16 against own rounded float32", other, 0.0),
            (shape + ", sums within torch's rounding", torch_layer.distance_to_rounding(sums, theirs), PRODUCT_LIMIT)]


def layer_values(on, tokens, top_k, experts, n, k):
    """[(what, error, limit)] of one float32 layer, forward and backward."""
    x, weight, chosen, factors = draw_layer(tokens, top_k, experts, n, k, on.device, torch.float32)
    dy = normals(tokens, n, device=on.device, dtype=torch.float32)
    y = torch.full_like(dy, float("nan"))
    got = [torch.full_like(of, float("nan")) for of in (x, weight, factors)]
    on.moe_forward(x, weight, chosen, factors, y)()
    on.moe_backward(x, weight, chosen, factors, dy, *got)()
    leaves = [tensor.clone().requires_grad_() for tensor in (x, weight, factors)]
    theirs = torch_layer.plain_layer(leaves[0], leaves[1], chosen, leaves[2])
    want = torch.autograd.grad(theirs, leaves, dy)
    shape = f"layer {experts} x [{n},{k}], {tokens} tokens, top {top_k}"
    pairs = zip(("y", "dx", "d_weight", "d_routing_weights"), (y, *got), (theirs.detach(), *want))
    return [(f"{shape}, {name}", torch_layer.relative(a, b), LAYER_LIMIT) for name, a, b in pairs]


def program_values(device, tokens, top_k, experts, n, k):
    """[(what, error, limit)] of the torch programs that are timed: that they are the layer at all, in bfloat16."""
    x, weight, chosen, factors = draw_layer(tokens, top_k, experts, n, k, device, torch.bfloat16)
    dy = normals(tokens, n, device=device)
    got = (torch_layer.moe_forward(x, weight, chosen, factors), *torch_layer.moe_backward(x, weight, chosen, factors, dy))
    leaves = [tensor.float().clone().requires_grad_() for tensor in (x, weight, factors)]
    y = torch_layer.plain_layer(leaves[0], leaves[1], chosen, leaves[2])
    want = (y.detach(), *torch.autograd.grad(y, leaves, dy.float()))
    return [(f"torch's program, {name}", torch_layer.relative(a, b), PROGRAM_LIMIT)
            for name, a, b in zip(("y", "dx", "d_weight", "d_routing_weights"), got, want)]


def values(on, small):
    torch.set_float32_matmul_precision("highest")
    found = []
    for shape in ((6, 50, 32, 48),) if small else ((8, 8192, 2048, 1024), (128, 4096, 1536, 2048)):
        found += product_values(on, *shape)
    for shape in ((40, 2, 6, 24, 32),) if small else ((1000, 4, 16, 768, 512), (700, 8, 64, 256, 1024)):
        found += layer_values(on, *shape)
    return found + program_values(on.device, 64, 2, 8, 48, 64)


# ---- times ---------------------------------------------------------------------------------------------------------------

class Timed:
    """A function warmed up and captured, several calls in one piece when they are short."""

    def __init__(self, name, function):
        self.name, self.function, self.calls, self.graph, self.events = name, function, 1, None, []
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                function()
        torch.cuda.current_stream().wait_stream(side)
        self.run()
        torch.cuda.synchronize()
        self.calls = max(1, min(32, math.ceil(SHORTEST_PIECE_MS / max(self.times(0)[0], 1e-3))))
        self.events.clear()
        try:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(self.calls):
                    function()
            self.graph = graph
        except RuntimeError as error:
            torch.cuda.synchronize()
            print(f"{name}: launched plainly: {str(error).splitlines()[0]}", file=sys.stderr)

    def run(self):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        if self.graph is not None:
            self.graph.replay()
        else:
            for _ in range(self.calls):
                self.function()
        end.record()
        self.events.append((begin, end))

    def times(self, skip):
        return [begin.elapsed_time(end) / self.calls for begin, end in self.events[skip:]]


def contenders(on, operation, cell, table):
    """(ours, theirs): functions without arguments on the same data."""
    workload, product, tokens, routing = cell
    w = table[workload]
    n, k = w[product]
    x, weight, chosen, factors = draw_layer(tokens, w["top_k"], w["experts"], n, k, on.device, torch.bfloat16, routing)
    if operation == "moe_forward":
        y = normals(tokens, n, device=on.device)
        return on.moe_forward(x, weight, chosen, factors, y), lambda: torch_layer.moe_forward(x, weight, chosen, factors)
    if operation == "moe_backward":
        dy = normals(tokens, n, device=on.device)
        gradients = [torch.empty_like(of) for of in (x, weight, factors)]
        return (on.moe_backward(x, weight, chosen, factors, dy, *gradients),
                lambda: torch_layer.moe_backward(x, weight, chosen, factors, dy))
    rows = torch_layer.Rows(chosen, w["experts"])
    x_rows = normals(tokens * w["top_k"], k, device=on.device)
    if operation == "grouped":
        out = torch.empty(x_rows.shape[0], n, dtype=torch.bfloat16, device=on.device)
        return on.grouped(x_rows, weight, rows.ends, out), lambda: torch_layer.grouped(x_rows, weight, rows.ends)
    g = normals(x_rows.shape[0], n, device=on.device)
    return on.weight_gradient(g, x_rows, rows.ends, torch.empty_like(weight)), lambda: torch_layer.weight_gradient(g, x_rows, rows.ends)


def time_cell(on, operation, cell, table, rounds):
    ours, theirs = contenders(on, operation, cell, table)
    pair = [Timed("ggm", ours), Timed("torch", theirs)]
    for _ in range(WARM_ROUNDS + rounds):
        for timed in random.sample(pair, 2):
            timed.run()
    torch.cuda.synchronize()
    found = {timed.name: timed.times(WARM_ROUNDS) for timed in pair}
    ratio = statistics.median(found["torch"]) / statistics.median(found["ggm"])
    return [{"operation": operation, "workload": cell[0], "product": cell[1], "tokens": cell[2], "routing": cell[3], "dtype": "bf16",
             "size_class": size_class(table[cell[0]], cell[2]), "contender": timed.name, "ms": statistics.median(found[timed.name]),
             "ms_min": min(found[timed.name]), "ms_max": max(found[timed.name]), "ratio": ratio, "rounds": rounds, "calls": timed.calls,
             "launch": "graph" if timed.graph is not None else "direct"} for timed in pair]


def wanted_cells(arguments, table):
    """(operation, cell), those of one workload and product together."""
    rows = peers()
    found = [(operation, cell) for operation in arguments.operations.split(",") for cell in peer_cells(operation, rows, table)
             if size_class(table[cell[0]], cell[2]) in arguments.classes.split(",") and
             (not arguments.workloads or cell[0] in arguments.workloads.split(","))]
    return sorted(found, key=lambda pair: (OPERATIONS.index(pair[0]), *pair[1]))


# ---- main ----------------------------------------------------------------------------------------------------------------

def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shared_object", type=pathlib.Path)
    parser.add_argument("--host", action="store_true")
    parser.add_argument("--output", type=pathlib.Path, default=BENCH / "results" / "torch-h200.jsonl")
    parser.add_argument("--manifest", type=pathlib.Path)
    parser.add_argument("--operations", default="grouped,grouped_k,moe_forward,moe_backward")
    parser.add_argument("--classes", default="train,prefill")
    parser.add_argument("--workloads", default="")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0, help="no further cell starts after that long; 0: no limit")
    return parser.parse_args()


def report_values(found):
    """Prints them; the number of those above their limit."""
    for what, error, limit in found:
        print(f"{what:72s} {error:.2e}, limit {limit:.0e}{'' if error <= limit else '  ABOVE'}")
    return sum(not error <= limit for _, error, limit in found)


def compare(arguments):
    manifest = check_manifest(arguments.manifest.read_text(encoding="utf-8")) if arguments.manifest else git_manifest()
    started, table = time.monotonic(), workloads()
    on = OnTensors(Ggm(arguments.shared_object.resolve(), "cuda"), "cuda")
    stamp = {"source_id": ids(manifest)["source_id"], "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
             "device": torch.cuda.get_device_name(), "torch": torch.__version__, "library": on.ggm.loaded.ggm_build_info().decode()}
    torch.manual_seed(20)
    random.seed(20)
    found = values(on, small=False)
    faults = report_values(found)
    records = [{"operation": "values", "what": what, "error": error, "limit": limit, **stamp} for what, error, limit in found]
    for operation, cell in wanted_cells(arguments, table):
        if arguments.seconds and time.monotonic() - started > arguments.seconds:
            print(f"{operation} {cell}: not reached within {arguments.seconds:.0f} s")
            faults += 1
            continue
        torch.cuda.empty_cache()
        try:
            lines = time_cell(on, operation, cell, table, arguments.rounds)
        except (RuntimeError, GgmError) as error:  # torch's are out of memory and unsupported calls as well
            print(f"FAILED {operation} {cell}: {error}")
            faults += 1
            continue
        records += [{**line, **stamp} for line in lines]
        print(f"{operation:12s} {' '.join(map(str, cell)):40s} ggm {lines[0]['ms']:9.4f} ms  torch {lines[1]['ms']:9.4f} ms  "
              f"{lines[0]['ratio']:6.3f}", flush=True)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    print_torch(records, table)
    print(f"{len(records)} records in {time.monotonic() - started:.0f} s, {faults} faults, written to {arguments.output}")
    return 1 if faults else 0


def main():
    arguments = parse()
    if arguments.host:
        torch.manual_seed(20)
        return 1 if report_values(values(OnTensors(Ggm(arguments.shared_object.resolve(), "host"), "cpu"), small=True)) else 0
    try:
        return compare(arguments)
    except Refused as refusal:
        print(f"refused: {refusal}")
        return 2


if __name__ == "__main__":
    sys.exit(main())
