#!/usr/bin/env python3
"""Checks a record of the bench and prints it beside what has to be reached.

Usage: bench/check.py [bench/results/bench-h200.jsonl] [--partial]

It fails (exit 1) on
  - a missing or an extra cell: cells are the rows of peers-h200.csv of each operation that the library has, and for
    moe_backward the moe_forward rows at prefill and train; moe_forward is wanted with combine auto and with ordered
  - a source id that is not the checkout's
  - flops, bytes, floor or fraction that do not follow from the cell and from the recorded times
  - a dense rate more than 8% below the column dense_tflops, fewer than 20 rounds, an error above its limit,
    calls of the library that were not replayed from a graph
and prints geometric means beside the bars, and the slowest cell against its best peer. Bars that are missed are marked and do not
make it fail: a record is a measurement, not a promise. --partial checks only the cells that are there.

plot.py and check_test.py use its functions.
"""
import argparse
import csv
import json
import math
import pathlib
import subprocess
import sys

BENCH = pathlib.Path(__file__).resolve().parent
READ_BYTES_PER_MS = 4.4e9  # the floor's read rate
DENSE_TOLERANCE = 0.08
SLOWER_THAN_PEER = 1.05
MIN_ROUNDS = 20
CLASSES = ("train", "prefill", "decode", "one")
CLASS_NAMES = {"train": "train", "prefill": "prefill 4096", "decode": "decode 16-256", "one": "T = 1"}
SIZE = {"float32": 4, "bf16": 2, "fp16": 2, "int32": 4}
REQUIRED = ("grouped", "grouped_k", "moe_forward", "moe_backward")

# floor / time, geometric mean, bf16: (operation, combine, class) -> to reach.
BARS = {
    ("grouped", "", "train"): 0.97, ("grouped", "", "prefill"): 0.88, ("grouped", "", "decode"): 0.96, ("grouped", "", "one"): 0.86,
    ("moe_forward", "auto", "train"): 0.92, ("moe_forward", "auto", "prefill"): 0.82,
    ("moe_forward", "auto", "decode"): 0.95, ("moe_forward", "auto", "one"): 0.80,
    ("moe_forward", "ordered", "train"): 0.84, ("moe_forward", "ordered", "prefill"): 0.60,
    ("grouped_k", "", "train"): 0.95, ("grouped_k", "", "prefill"): 0.82,
    ("moe_backward", "", "train"): 0.86, ("moe_backward", "", "prefill"): 0.74,
}
# Against the plain bf16 contiguous product at train sizes: (operation, variant, dtype) -> share of its fraction.
PATH_BARS = {
    ("grouped", "kn", "bf16"): 0.9, ("grouped", "plain", "fp16"): 0.9, ("grouped", "float32-output", "bf16"): 0.9,
    ("grouped_masked", "plain", "bf16"): 0.9, ("grouped_general", "plain", "bf16"): 0.9, ("grouped", "unaligned", "bf16"): 0.4,
}
MOVE_BAR = 0.85  # permute and unpermute, of copy bandwidth
ROUTE_BARS_US = ((2048, 6), (32768, 20), (262144, 40))
FLOAT32_BAR = 0.95  # of cuBLAS in the same run


# ---- cells ------------------------------------------------------------------------------------------------------------

def workloads(path=BENCH / "workloads.json"):
    """name -> {up: (n, k), down: (n, k) or None, experts, top_k, train_tokens}"""
    raw = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    table = {}
    for name, w in raw["workloads"].items():
        table[name] = {"up": (2 * w["intermediate"], w["hidden"]), "down": (w["hidden"], w["intermediate"]),
                       "experts": w["experts"], "top_k": w["top_k"], "train_tokens": w["train_tokens"]}
    for name, w in raw["single"].items():
        table[name] = {"up": (w["out_features"], w["in_features"]), "down": None, "experts": w["experts"], "top_k": w["top_k"],
                       "train_tokens": 0}
    return table


def size_class(workload, tokens):
    if tokens == 1:
        return "one"
    if tokens <= 256:
        return "decode"
    return "train" if tokens == workload["train_tokens"] else "prefill"


def peers(path=BENCH / "peers-h200.csv"):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def cell_of(record):
    """What names a cell in one operation."""
    return (record["workload"], record["product"], int(record["tokens"]), record["routing"])


def peer_cells(operation, rows, table):
    """cell -> row of the peers, for one operation of REQUIRED."""
    source = "moe_forward" if operation == "moe_backward" else operation
    cells = {cell_of(row): row for row in rows if row["operation"] == source and row["dtype"] == "bf16"}
    if operation == "moe_backward":
        cells = {cell: row for cell, row in cells.items() if size_class(table[cell[0]], cell[2]) in ("prefill", "train")}
    return cells


def combines(operation):
    return ("auto", "ordered") if operation == "moe_forward" else ("",)


# ---- the floor ---------------------------------------------------------------------------------------------------------

def work(record, table):
    """(flops, dense_flops, bytes) that the cell asks for, from its shape and the experts touched."""
    w = table[record["workload"]]
    n, k = w[record["product"]]
    tokens, rows, experts = record["tokens"], record["tokens"] * w["top_k"], w["experts"]
    size = SIZE[record["dtype"]]
    out = 4 if record["variant"] == "float32-output" else size
    ids = factors = 4 * rows
    offsets = 4 * (experts + 1)
    weights = record["experts_touched"] * n * k * size
    product = 2 * rows * n * k
    operation = record["operation"]
    if operation in ("grouped", "grouped_masked", "grouped_general"):
        return product, product, weights + rows * k * size + rows * n * out
    if operation == "grouped_k":
        return product, product, rows * k * size + rows * n * size + experts * n * k * out
    if operation == "moe_forward":
        return product, product, weights + tokens * k * size + tokens * n * out + ids + factors
    if operation == "moe_backward":
        return (2 * product, product,
                weights + 2 * tokens * k * size + tokens * n * size + experts * n * k * size + ids + 2 * factors)
    if operation == "route":
        return 0, 0, ids + offsets + 8 * rows
    if operation == "permute":
        return 0, 0, tokens * k * size + rows * k * out + offsets + 8 * rows
    if operation == "unpermute":  # of rows as wide as the product's output
        return 0, 0, rows * n * size + tokens * n * out + factors + offsets + 8 * rows
    raise ValueError(f"operation {operation} is not known")


def floor_ms(record):
    memory = record["bytes"] / READ_BYTES_PER_MS
    if not record.get("dense_ms") or not record.get("dense_flops"):
        return memory
    return max(record["flops"] * record["dense_ms"] / record["dense_flops"], memory)


def fraction(record):
    return floor_ms(record) / record["ms"]


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


# ---- what is wrong with a record ----------------------------------------------------------------------------------------

def close(a, b, tolerance=1e-3):
    return abs(a - b) <= tolerance * max(abs(a), abs(b), 1e-300)


def describe(record):
    text = "{operation} {workload} {product} T={tokens} {routing} {dtype}".format(**record)
    for word in ("variant", "combine"):
        if record.get(word) not in (None, "", "plain"):
            text += " " + record[word]
    return text


def ours(records):
    return [r for r in records if r["contender"] == "ggm"]


def cell_faults(records, rows, table, partial=False):
    """Missing, extra and doubled cells of the operations and dtypes that the record must have."""
    faults = []
    for operation in REQUIRED:
        cells = peer_cells(operation, rows, table)
        for combine in combines(operation):
            found = [cell_of(r) for r in ours(records) if r["operation"] == operation and r["dtype"] == "bf16" and
                     r["variant"] == "plain" and r["combine"] == combine]
            name = f"{operation} {combine}".strip()
            if not partial:
                faults += [f"missing cell: {name} {cell}" for cell in sorted(set(cells) - set(found))]
            faults += [f"extra cell: {name} {cell}" for cell in sorted(set(found) - set(cells))]
            faults += [f"cell twice: {name} {cell}" for cell in sorted({c for c in found if found.count(c) > 1})]
        unknown = {r["combine"] for r in ours(records) if r["operation"] == operation} - set(combines(operation))
        faults += [f"extra cell: {operation} with combine {combine!r}" for combine in sorted(unknown)]
    return faults


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
    if record["contender"] == "ggm" and record["launch"] != "graph":
        faults.append(f"{name}: launched {record['launch']}, a record replays graphs")
    if record["rounds"] < MIN_ROUNDS:
        faults.append(f"{name}: rounds = {record['rounds']}, at least {MIN_ROUNDS}")
    return faults


def error_faults(record):
    faults = []
    for part, error in (record["rel_err_parts"] or {"d": record["rel_err"]}).items():
        name, limit = f"{describe(record)}: rel_err of {part}", error_limit(record, part)
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


def faults_of(records, rows, table, source_id, partial=False):
    faults = cell_faults(records, rows, table, partial)
    by_operation = {operation: peer_cells(operation, rows, table) for operation in REQUIRED}
    for record in records:
        if record["source_id"] != source_id:
            faults.append(f"stale: source id {record['source_id']}, the checkout's is {source_id}")
            break
    for record in records:
        if record["operation"] == "bandwidth":
            continue
        faults += number_faults(record, table)
        if record["contender"] == "ggm":
            faults += error_faults(record)
            row = by_operation.get(record["operation"], {}).get(cell_of(record))
            if row and record["dtype"] == "bf16":
                faults += peer_faults(record, row)
    return faults


# ---- what it says --------------------------------------------------------------------------------------------------------

def geometric_mean(values):
    values = list(values)
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else float("nan")


def means(records, table, contender="ggm", dtype="bf16", variant="plain"):
    """(operation, combine, class) -> (geometric mean of the fraction, cells)"""
    groups = {}
    for r in records:
        if r["operation"] == "bandwidth" or (r["contender"], r["dtype"], r["variant"]) != (contender, dtype, variant):
            continue
        groups.setdefault((r["operation"], r["combine"], size_class(table[r["workload"]], r["tokens"])), []).append(fraction(r))
    return {key: (geometric_mean(values), len(values)) for key, values in groups.items()}


def slowest(records, rows, table, operation, combine, wanted):
    """(time over the best peer's, record) of the worst cell of a group; None when no cell has a peer."""
    if operation == "moe_backward":
        return None  # the peers' file has no such rows, only its cells
    cells = peer_cells(operation, rows, table) if operation in REQUIRED else {}
    ratios = [(r["ms"] / float(cells[cell_of(r)]["ms"]), i, r) for i, r in enumerate(ours(records))
              if (r["operation"], r["combine"], r["dtype"], r["variant"]) == (operation, combine, "bf16", "plain") and
              size_class(table[r["workload"]], r["tokens"]) == wanted and cell_of(r) in cells]
    return max(ratios)[::2] if ratios else None


def mark(value, bar):
    return "" if bar is None else f"{bar:8.3f}  {'reached' if value >= bar else 'missed'}"


def print_means(records, rows, table):
    found = means(records, table)
    print(f"{'operation':24s} {'size':14s} {'cells':>5s} {'floor/t':>8s} {'bar':>8s}           slowest against its best peer")
    for operation in REQUIRED:
        for combine in combines(operation):
            for wanted in CLASSES:
                if (operation, combine, wanted) not in found:
                    continue
                value, count = found[operation, combine, wanted]
                worst = slowest(records, rows, table, operation, combine, wanted)
                # The 5% belong to the library's default; ordered is a choice that costs.
                late = worst and combine != "ordered" and worst[0] > SLOWER_THAN_PEER
                text = f"{worst[0]:.2f} x  {describe(worst[1])}{'  over 1.05' if late else ''}" if worst else ""
                bar = mark(value, BARS.get((operation, combine, wanted)))
                print(f"{(operation + ' ' + combine).strip():24s} {CLASS_NAMES[wanted]:14s} {count:5d} {value:8.3f} {bar:18s} {text}")


def print_baselines(records, table):
    names = sorted({r["contender"] for r in records if r["operation"] != "bandwidth"} - {"ggm"})
    print("\nbaselines of the same run, floor / time over the cells that each took")
    for name in names:
        for (operation, combine, wanted), (value, count) in sorted(means(records, table, name).items()):
            print(f"  {name:32s} {operation:16s} {CLASS_NAMES[wanted]:14s} {count:5d} {value:8.3f}")


def print_paths(records, table):
    base = means(records, table).get(("grouped", "", "train"))
    lines = []
    for (operation, variant, dtype), bar in PATH_BARS.items():
        value = means(records, table, dtype=dtype, variant=variant).get((operation, "", "train"))
        if base and value:
            share = value[0] / base[0]
            lines.append(f"  {operation + ' ' + variant + ' ' + dtype:36s} {value[1]:5d} cells {share:8.3f} of grouped bf16 {mark(share, bar)}")
    copy = next((r["bytes"] / r["ms"] for r in records if r["operation"] == "bandwidth" and r["contender"] == "copy"), None)
    for operation in ("permute", "unpermute"):
        values = [r["bytes"] / r["ms"] / copy for r in ours(records) if copy and r["operation"] == operation and
                  size_class(table[r["workload"]], r["tokens"]) == "train"]
        if values:
            share = geometric_mean(values)
            lines.append(f"  {operation:36s} {len(values):5d} cells {share:8.3f} of copy bandwidth {mark(share, MOVE_BAR)}")
    lines += float32_lines(records, table) + route_lines(records) + skew_lines(records, table) + backward_lines(records, table)
    if lines:
        print("\nother paths and relations")
        print("\n".join(lines))


def float32_lines(records, table):
    """The dense product is cuBLAS on the same rows in the same run."""
    values = [r["dense_ms"] / r["ms"] for r in ours(records) if r["operation"] == "grouped" and r["dtype"] == "float32" and
              r["variant"] == "plain" and size_class(table[r["workload"]], r["tokens"]) == "train"]
    share = geometric_mean(values)
    return [f"  {'grouped float32':36s} {len(values):5d} cells {share:8.3f} of cuBLAS {mark(share, FLOAT32_BAR)}"] if values else []


def route_lines(records):
    lines = []
    for index, (rows, bar) in enumerate(ROUTE_BARS_US):
        least = ROUTE_BARS_US[index - 1][0] if index else 0
        times = [1e3 * r["ms"] for r in ours(records) if r["operation"] == "route" and least < r["rows"] <= rows]
        if times:
            verdict = "reached" if max(times) <= bar else "missed"
            lines.append(f"  {'route, S <= ' + str(rows):36s} {len(times):5d} cells {max(times):8.2f} us at most, bar {bar} us  {verdict}")
    return lines


def skew_lines(records, table):
    """Zipf over uniform at train sizes: at most 1.05."""
    lines = []
    for operation in REQUIRED:
        for combine in combines(operation):
            of = {cell_of(r): r["ms"] for r in ours(records) if (r["operation"], r["combine"], r["dtype"], r["variant"]) ==
                  (operation, combine, "bf16", "plain") and size_class(table[r["workload"]], r["tokens"]) == "train"}
            ratios = [ms / of[cell[:3] + ("uniform",)] for cell, ms in of.items() if cell[3] == "zipf" and cell[:3] + ("uniform",) in of]
            if ratios:
                name = f"{operation} {combine}".strip() + ", zipf over uniform"
                verdict = "reached" if max(ratios) <= 1.05 else "missed"
                lines.append(f"  {name:36s} {len(ratios):5d} cells {max(ratios):8.3f} at most, bar 1.05  {verdict}")
    return lines


def backward_lines(records, table):
    """Ratios of our own operations on the same cell: backward over forward, bare product over fused forward."""
    def times(operation, combine):
        return {cell_of(r): r["ms"] for r in ours(records)
                if (r["operation"], r["combine"], r["dtype"], r["variant"]) == (operation, combine, "bf16", "plain")}
    forward, backward, bare = times("moe_forward", "auto"), times("moe_backward", ""), times("grouped", "")
    lines = []
    ratios = [backward[cell] / forward[cell] for cell in backward if cell in forward]
    if ratios:
        lines.append(f"  {'moe_backward over moe_forward':36s} {len(ratios):5d} cells {geometric_mean(ratios):8.3f}")
    for wanted in CLASSES:
        ratios = [bare[cell] / forward[cell] for cell in forward if cell in bare and size_class(table[cell[0]], cell[2]) == wanted]
        if ratios:
            name = f"grouped over moe_forward, {CLASS_NAMES[wanted]}"
            lines.append(f"  {name:36s} {len(ratios):5d} cells {geometric_mean(ratios):8.3f}")
    return lines


# ---- main ----------------------------------------------------------------------------------------------------------------

def read_records(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def current_source_id():
    import hashlib
    listing = subprocess.run(["git", "ls-files", "-s", "include", "src"], cwd=BENCH.parent, capture_output=True, check=True).stdout
    return hashlib.sha256(listing).hexdigest()[:12]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", nargs="?", type=pathlib.Path, default=BENCH / "results" / "bench-h200.jsonl")
    parser.add_argument("--partial", action="store_true", help="a record of some cells: do not ask for the others")
    arguments = parser.parse_args()
    records, rows, table = read_records(arguments.record), peers(), workloads()
    for record in records:
        if record["operation"] == "bandwidth":
            print(f"{record['contender']} bandwidth {record['bytes'] / record['ms'] * 1e-9:.3f} TB/s, {record['device']}, {record['date']}")
    print_means(records, rows, table)
    print_baselines(records, table)
    print_paths(records, table)
    faults = faults_of(records, rows, table, current_source_id(), arguments.partial)
    print(f"\n{len(ours(records))} cells of the library, {len(records)} records, {len(faults)} faults")
    for fault in faults:
        print("FAULT " + fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
