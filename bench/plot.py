#!/usr/bin/env python3
"""Draws a record of the bench: bench/plot.py [RECORD] [--output FOLDER]. Needs matplotlib.

  RECORD-fraction.png        floor / time of each operation and size class, geometric mean; ours beside the baselines, bars to reach as marks
  RECORD-time-OPERATION.png  time of one call over tokens T, a panel a workload: ours, the floor, baselines, the best peer
"""
import argparse
import pathlib

import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt

import cells
import summary

COLORS = {"ggm": "#1f6fb4", "ggm ordered": "#7fb2dd", "ggm-portable": "#3a3f8f", "cuBLAS dense": "#9a9a9a", "cuBLAS loop": "#d98032",
          "cuBLAS grouped": "#5b9e4d", "cuBLAS padded": "#b0508d", "permute, cuBLAS loop, unpermute": "#8a6d3b"}


def label_of(record):
    """Contender as a legend names it; the two dense orders are one."""
    if record["contender"].startswith("cuBLAS dense"):
        return "cuBLAS dense"
    return "ggm ordered" if record["combine"] == "ordered" else record["contender"]


def plain(records):
    return [r for r in records if r["operation"] in cells.REQUIRED and r["dtype"] == "bf16" and r["variant"] == "plain"]


def best_of_cell(records):
    """(operation, cell, label) -> record of the least time: of the two dense orders the faster."""
    best = {}
    for r in plain(records):
        key = (r["operation"], cells.cell_of(r), label_of(r))
        if key not in best or r["ms"] < best[key]["ms"]:
            best[key] = r
    return best


def class_means(records, table):
    """(operation, class, label) -> (mean, share of the group's cells that the contender took)"""
    groups = {}
    for (operation, cell, label), r in best_of_cell(records).items():
        # A dense product is one product; beside the backward's two it would look twice as fast as it is.
        if label == "cuBLAS dense":
            continue
        groups.setdefault((operation, cells.size_class(table[cell[0]], cell[2]), label), []).append(cells.fraction(r))
    full = {}
    for (operation, wanted, _), values in groups.items():
        full[operation, wanted] = max(full.get((operation, wanted), 0), len(values))
    return {key: (summary.geometric_mean(v), len(v) / full[key[:2]]) for key, v in groups.items()}


def draw_fractions(records, table, path):
    means = class_means(records, table)
    operations = [o for o in cells.REQUIRED if any(key[0] == o for key in means)]
    figure, axes = plt.subplots(1, len(operations), figsize=(4.6 * len(operations), 4.4), sharey=True, squeeze=False)
    for axis, operation in zip(axes[0], operations):
        classes = [c for c in cells.CLASSES if any(key[:2] == (operation, c) for key in means)]
        labels = [label for label in COLORS if any(key[0] == operation and key[2] == label for key in means)]
        width = 0.8 / max(1, len(labels))
        for i, label in enumerate(labels):
            for j, wanted in enumerate(classes):
                if (operation, wanted, label) not in means:
                    continue
                value, share = means[operation, wanted, label]
                x = j + (i - (len(labels) - 1) / 2) * width
                axis.bar(x, value, width, color=COLORS[label], label=label if j == 0 else None, hatch=None if share == 1 else "//",
                         edgecolor="white", linewidth=0.5)
                axis.text(x, value + 0.01, f"{value:.2f}", ha="center", fontsize=6.5)
        for j, wanted in enumerate(classes):
            for combine in cells.combines(operation):
                bar = summary.BARS.get((operation, combine, wanted))
                if bar:
                    axis.hlines(bar, j - 0.45, j + 0.45, color="black", linestyle=":" if combine == "ordered" else "--", linewidth=1)
        axis.set_xticks(range(len(classes)), [cells.CLASS_NAMES[c] for c in classes], fontsize=8)
        axis.set_title(operation)
        axis.legend(fontsize=7, loc="lower right")
    axes[0][0].set_ylabel("floor / time, geometric mean (hatched: some cells only)")
    figure.suptitle(f"bf16, {records[0]['device']}, {records[0]['date']}, source {records[0]['source_id']}; dashed: to reach")
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def draw_times(records, table, rows, operation, path):
    """One panel a workload and product; solid uniform, dotted zipf."""
    best = {key: r for key, r in best_of_cell(records).items() if key[0] == operation}
    panels = [(w, p) for w in table for p in ("up", "down") if sum(key[1][:2] == (w, p) for key in best) and w != "square-8"]
    if not panels:
        return False
    columns = min(4, len(panels))
    lines = -(-len(panels) // columns)
    figure, axes = plt.subplots(lines, columns, figsize=(4.2 * columns, 3.4 * lines), squeeze=False)
    for axis in axes.flat[len(panels):]:
        axis.set_visible(False)
    peer_ms = {cell: float(row["ms"]) for cell, row in cells.peer_cells(operation, rows, table).items()} if operation != "moe_backward" else {}
    for axis, (workload, product) in zip(axes.flat, panels):
        for routing, style in (("uniform", "-"), ("zipf", ":")):
            def curve(points, color, label, marker="o"):
                points = sorted(points)
                if points:
                    axis.plot(*zip(*points), style, color=color, marker=marker, markersize=3, linewidth=1.2,
                              label=label if routing == "uniform" else None)
            for label, color in COLORS.items():
                curve([(c[2], r["ms"]) for (_, c, name), r in best.items() if name == label and c[:2] == (workload, product) and
                       c[3] == routing], color, label)
            curve([(c[2], cells.floor_ms(r)) for (_, c, name), r in best.items() if name == "ggm" and c[:2] == (workload, product) and
                   c[3] == routing], "black", "floor", marker="")
            curve([(c[2], ms) for c, ms in peer_ms.items() if c[:2] == (workload, product) and c[3] == routing], "#c03030", "best peer", "x")
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_title(f"{workload} {product}", fontsize=9)
        axis.grid(True, which="major", linewidth=0.3)
    axes[0][0].legend(fontsize=6.5)
    for axis in axes[-1]:
        axis.set_xlabel("tokens T")
    for line in axes:
        line[0].set_ylabel("ms")
    figure.suptitle(f"{operation}, bf16: time of one call over tokens; solid uniform, dotted zipf")
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", nargs="?", type=pathlib.Path, default=cells.BENCH / "results" / "bench-h200.jsonl")
    parser.add_argument("--output", type=pathlib.Path, help="folder; default: the record's")
    arguments = parser.parse_args()
    records, table, rows = cells.read_records(arguments.record), cells.workloads(), cells.peers()
    folder = arguments.output or arguments.record.parent
    folder.mkdir(parents=True, exist_ok=True)
    stem = arguments.record.stem
    draw_fractions(records, table, folder / f"{stem}-fraction.png")
    print(folder / f"{stem}-fraction.png")
    for operation in cells.REQUIRED:
        path = folder / f"{stem}-time-{operation}.png"
        if draw_times(records, table, rows, operation, path):
            print(path)


if __name__ == "__main__":
    main()
