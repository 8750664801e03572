#!/usr/bin/env python3
"""Checks the records of the bench and prints them beside what has to be reached.

Usage: bench/check.py [bench/results/bench-h200.jsonl] [--partial]
It reads the record of the cells and, from the same folder, those of the other paths, the plan and torch where they are there.

It fails (exit 1) on
  - a missing or an extra cell. The record's cells are the rows of peers-h200.csv of each operation that the library has, and
    for moe_backward the moe_forward rows at prefill and train; moe_forward is wanted with combine auto and with ordered.
    The paths are PATHS of cells.py, the plan's cells the shapes of shapes12.json, each with at least one forced kernel
  - a source id that is not the checkout's
  - flops, bytes, floor or fraction that do not follow from the cell and from the recorded times
  - a dense rate more than 8% below the column dense_tflops, fewer than 20 rounds, an error above its limit,
    calls of the library that were not replayed from a graph
and prints geometric means beside the bars, and the slowest cell against its best peer. Bars that are missed are marked and do not
make it fail: a record is a measurement, not a promise. --partial checks only the cells that are there.
"""
import argparse
import hashlib
import math
import pathlib
import subprocess
import sys

from cells import (BENCH, REQUIRED, cell_of, combines, describe, floor_ms, fraction, ours, path_cells, path_of, peer_cells, peers, plan_cells,
                   read_records, work, workloads)
from summary import print_baselines, print_dense_rates, print_means, print_plan, print_relations, print_torch

DENSE_TOLERANCE = 0.08
MIN_ROUNDS = 20


# ---- what is wrong with one record ---------------------------------------------------------------------------------------

def error_limit(record, part="d"):
    """Limit of the relative Frobenius error of one part of a result; L is the length of its sums."""
    operation, dtype = record["operation"], record["dtype"]
    if operation in ("route", "permute"):
        return 0.0
    n, k = workloads()[record["workload"]][record["product"]]
    length = {"grouped_k": record["rows"], "moe_backward": max(record["rows"], n, k), "unpermute": 1}.get(operation, k)
    if dtype == "float32":
        return 2e-6 * math.sqrt(max(1, length / 4096))
    if part == "d_routing_weights" or record["variant"] == "float32-output":
        return 2e-5 * max(1, (n + k if part == "d_routing_weights" else length) / 16384)
    return 2.6e-3 if operation in ("moe_forward", "moe_backward") else 2e-3


def close(a, b, tolerance=1e-3):
    return abs(a - b) <= tolerance * max(abs(a), abs(b), 1e-300)


def of_library(record):
    """Its default, its portable kernels, a forced one."""
    return record["contender"].startswith("ggm")


def number_faults(record, table):
    faults = []
    name = f"{describe(record)} ({record['contender']})"
    flops, dense_flops, size = work(record, table)
    if record["contender"].startswith("cuBLAS dense"):
        flops = dense_flops
    for word, value in (("flops", flops), ("dense_flops", dense_flops), ("bytes", size)):
        if not close(record[word], value):
            faults.append(f"{name}: {word} = {record[word]:.6g}, the cell has {value:.6g}")
    if not record["ms"] or not record["ms"] > 0:
        return faults + [f"{name}: ms = {record['ms']}"]
    if dense_flops and not record["dense_ms"]:
        faults.append(f"{name}: no dense_ms")
    if not close(record["floor_ms"], floor_ms(record)):
        faults.append(f"{name}: floor_ms = {record['floor_ms']}, recomputed {floor_ms(record):.6g}")
    if not close(record["fraction"], fraction(record)):
        faults.append(f"{name}: fraction = {record['fraction']}, recomputed {fraction(record):.6g}")
    if of_library(record) and record["launch"] != "graph":
        faults.append(f"{name}: launched {record['launch']}, a record replays graphs")
    if record["rounds"] < MIN_ROUNDS:
        faults.append(f"{name}: rounds = {record['rounds']}, at least {MIN_ROUNDS}")
    return faults


def error_faults(record):
    faults = []
    for part, error in (record["rel_err_parts"] or {"d": record["rel_err"]}).items():
        name, limit = f"{describe(record)} ({record['contender']}): rel_err of {part}", error_limit(record, part)
        if not isinstance(error, (int, float)):
            faults.append(f"{name} = {error}")
        elif not error <= limit:
            faults.append(f"{name} = {error:.3g}, limit {limit:.3g}")
    return faults


def peer_faults(record, row):
    """Faults of one of our records against the row of the peers: a flattering card or another routing."""
    faults = []
    if row["dense_tflops"]:
        rate = record["dense_flops"] / record["dense_ms"] * 1e-9 if record["dense_ms"] else 0
        if rate < (1 - DENSE_TOLERANCE) * float(row["dense_tflops"]):
            faults.append(f"{describe(record)}: dense rate {rate:.0f} TFLOP/s, the table's {row['dense_tflops']}")
    if row["experts_touched"] and not close(record["experts_touched"], float(row["experts_touched"]), 0.03):
        faults.append(f"{describe(record)}: experts touched {record['experts_touched']}, the table's {row['experts_touched']}")
    return faults


# ---- what is wrong with a file -------------------------------------------------------------------------------------------

def set_faults(name, found, cells, partial):
    """Missing, extra and doubled ones of a list that must be `cells`."""
    faults = [] if partial else [f"missing cell: {name} {cell}" for cell in sorted(set(cells) - set(found))]
    faults += [f"extra cell: {name} {cell}" for cell in sorted(set(found) - set(cells))]
    return faults + [f"cell twice: {name} {cell}" for cell in sorted({c for c in found if found.count(c) > 1})]


def cell_faults(records, rows, table, partial=False):
    """Missing, extra and doubled cells of the operations and dtypes that the record must have."""
    faults = []
    for operation in REQUIRED:
        cells = peer_cells(operation, rows, table)
        for combine in combines(operation):
            found = [cell_of(r) for r in ours(records) if r["operation"] == operation and r["dtype"] == "bf16" and
                     r["variant"] == "plain" and r["combine"] == combine]
            faults += set_faults(f"{operation} {combine}".strip(), found, cells, partial)
        unknown = {r["combine"] for r in ours(records) if r["operation"] == operation} - set(combines(operation))
        faults += [f"extra cell: {operation} with combine {combine!r}" for combine in sorted(unknown)]
    return faults


def stale_faults(records, source_id):
    others = sorted({str(r["source_id"]) for r in records} - {source_id})
    return [f"stale: source id {other}, the checkout's is {source_id}" for other in others]


def record_faults(records, table, source_id):
    """What holds for the records of every file of ggm_bench."""
    faults = stale_faults(records, source_id)
    for record in records:
        if record["operation"] == "bandwidth":
            continue
        faults += number_faults(record, table)
        if of_library(record):
            faults += error_faults(record)
    return faults


def faults_of(records, rows, table, source_id, partial=False):
    """Of the record of the cells."""
    faults = cell_faults(records, rows, table, partial) + record_faults(records, table, source_id)
    by_operation = {operation: peer_cells(operation, rows, table) for operation in REQUIRED}
    for record in ours(records):
        row = by_operation.get(record["operation"], {}).get(cell_of(record))
        if row and record["dtype"] == "bf16" and record["ms"]:
            faults += peer_faults(record, row)
    return faults


def path_faults(records, rows, table, source_id, partial=False):
    found = [path_of(r) for r in ours(records)]
    return set_faults("path", found, path_cells(rows, table), partial) + record_faults(records, table, source_id)


def plan_faults(records, table, source_id, partial=False):
    faults = []
    for operation, cells in plan_cells().items():
        kept = [r for r in records if r["operation"] == operation and r["combine"] != "ordered"]
        faults += set_faults(f"plan {operation}", [cell_of(r) for r in ours(kept)], cells, partial)
        forced = {cell_of(r) for r in kept if r["contender"].startswith("ggm:")}
        faults += [f"no forced kernel: {operation} {cell}" for cell in sorted({cell_of(r) for r in ours(kept)} - forced)]
    return faults + record_faults(records, table, source_id)


def torch_faults(records, source_id):
    faults = stale_faults(records, source_id)
    for r in records:
        if r["operation"] == "values":
            if not r["error"] <= r["limit"]:
                faults.append(f"{r['what']}: error {r['error']}, limit {r['limit']}")
        elif r["rounds"] < MIN_ROUNDS:
            faults.append(f"{r['operation']} {cell_of(r)} ({r['contender']}): rounds = {r['rounds']}, at least {MIN_ROUNDS}")
    if not any(r["operation"] == "values" for r in records):
        faults.append("torch: no values were compared")
    return faults


# ---- main ----------------------------------------------------------------------------------------------------------------

def current_source_id():
    listing = subprocess.run(["git", "ls-files", "-s", "include", "src"], cwd=BENCH.parent, capture_output=True, check=True).stdout
    return hashlib.sha256(listing).hexdigest()[:12]


def beside(record, kind):
    """The record of another kind: bench-h200.jsonl has paths-h200.jsonl beside it. Empty when there is none."""
    path = record.with_name(record.name.replace("bench", kind, 1))
    return read_records(path) if path != record and path.is_file() else []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", nargs="?", type=pathlib.Path, default=BENCH / "results" / "bench-h200.jsonl")
    parser.add_argument("--partial", action="store_true", help="records of some cells: do not ask for the others")
    arguments = parser.parse_args()
    records, rows, table = read_records(arguments.record), peers(), workloads()
    paths, plan, torch = (beside(arguments.record, kind) for kind in ("paths", "plan", "torch"))
    for record in records + paths:
        if record["operation"] == "bandwidth":
            print(f"{record['contender']} bandwidth {record['bytes'] / record['ms'] * 1e-9:.3f} TB/s, {record['device']}, {record['date']}")
    print_means(records, rows, table)
    print_dense_rates(records, rows, table)
    print_baselines(records, table)
    print_relations(records, paths or records, table)
    source_id = current_source_id()
    faults = faults_of(records, rows, table, source_id, arguments.partial)
    if paths:
        faults += path_faults(paths, rows, table, source_id, arguments.partial)
    if plan:
        print_plan(plan)
        faults += plan_faults(plan, table, source_id, arguments.partial)
    if torch:
        print_torch(torch, table)
        faults += torch_faults(torch, source_id)
    print(f"\n{len(ours(records))} cells of the library and {len(ours(paths))} of other paths, {len(records + paths)} records, {len(faults)} faults")
    for fault in faults:
        print("FAULT " + fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
