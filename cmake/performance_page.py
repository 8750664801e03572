#!/usr/bin/env python3
"""Writes the figures of docs/performance.md and docs/concepts.md out of the records in the folder results of bench/.

Between the two marks of a page everything is this script's; the text around them has no figures. Without an option it rewrites
the pages; with --check it says whether they have what the records say, and exits with 1 if not: run it again after new records.
--plot draws docs/concepts-ways.png as well, and needs matplotlib.

Usage: cmake/performance_page.py [--check | --plot]
"""
import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import cells  # noqa: E402  the bench's own words for cells, classes and means
import summary  # noqa: E402

DOCS = ROOT / "docs"
BEGIN, END = "<!-- figures: written by cmake/performance_page.py -->\n", "<!-- end of the figures -->\n"
RECORDS = ("bench", "paths", "torch", "plan")
CLASS_HEADS = ("training batch", "4096 tokens", "16 to 256 tokens", "1 token")
OPERATIONS = (
    ("grouped", "", "grouped product, contiguous"),
    ("grouped_k", "", "weight gradient, variable K"),
    ("moe_forward", "auto", "fused forward, two-step combine"),
    ("moe_forward", "ordered", "fused forward, ordered combine"),
    ("moe_backward", "", "fused backward, all gradients"),
)
BASELINES = (
    ("grouped", "cuBLAS loop", "one cuBLAS product an expert"),
    ("grouped", "cuBLAS grouped", "`cublasGemmGroupedBatchedEx`"),
    ("grouped", "cuBLAS padded", "cuBLAS strided batched, groups padded beforehand"),
    ("grouped_k", "cuBLAS loop", "weight gradient: one cuBLAS product an expert"),
    ("moe_forward", "permute, cuBLAS loop, unpermute", "fused forward: permute, a cuBLAS product an expert, unpermute"),
)
WAYS = (("cuBLAS loop", "one product an expert"), ("cuBLAS padded", "padded"), ("ggm", "one grouped product"))
ROUTINGS = (("uniform", "uniform routing"), ("zipf", "skewed routing (zipf)"))
PATHS = (
    ("grouped", "kn", "bf16", "weights [E,K,N]"),
    ("grouped", "plain", "fp16", "float16"),
    ("grouped", "float32-output", "bf16", "float32 output"),
    ("grouped_masked", "plain", "bf16", "masked layout"),
    ("grouped_general", "plain", "bf16", "general form (portable kernels)"),
    ("grouped", "unaligned", "bf16", "rows that are no multiple of 16 bytes (portable kernels)"),
)


def read(name):
    lines = (ROOT / "bench" / "results" / f"{name}-h200.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def row(*values):
    return "| " + " | ".join(values) + " |\n"


def table(heads, rows):
    return row(*heads) + row(*("---" for _ in heads)) + "".join(row(*r) for r in rows) + "\n"


def of_record(records, name):
    ids = sorted({r["source_id"] for r in records[name] if "source_id" in r})
    return f"`{name}-h200.jsonl`, sources `{', '.join(ids)}`"


def fractions(records, shapes):
    found, portable = (summary.means(records["bench"], shapes, contender) for contender in ("ggm", "ggm-portable"))
    rows = []
    for means, kernels in ((found, ""), (portable, ", portable kernels")):
        for operation, combine, words in OPERATIONS:
            values = [means.get((operation, combine, wanted)) for wanted in cells.CLASSES]
            if any(values):
                rows.append((words + kernels, *(f"{v[0]:.2f} ({v[1]})" if v else "" for v in values)))
    return table(("floor / time (cells)", *CLASS_HEADS), rows)


def baselines(records, shapes):
    rows = []
    for operation, contender, words in BASELINES:
        combine = cells.combines(operation)[0]
        ours = summary.times(records["bench"], operation, combine)
        theirs = {cells.cell_of(r): r["ms"] for r in records["bench"]
                  if (r["operation"], r["contender"], r.get("dtype"), r.get("variant")) == (operation, contender, "bf16", "plain")}
        ratios = summary.ratios_by_class(theirs, ours, shapes)
        if ratios:
            rows.append((words, *(f"{summary.geometric_mean(ratios[c]):.2f} ({min(ratios[c]):.2f} to {max(ratios[c]):.2f})"
                                  if c in ratios else "" for c in cells.CLASSES)))
    return table(("its time / the library's, mean (least to most)", *CLASS_HEADS), rows)


def torch(records, shapes):
    rows = []
    words = {operation: text for operation, combine, text in reversed(OPERATIONS)}
    words["moe_forward"] = "fused forward"
    for operation, ratios in summary.torch_ratios(records["torch"]).items():
        of_class = {}
        for cell, ratio in ratios.items():
            of_class.setdefault(cells.size_class(shapes[cell[0]], cell[2]), []).append(ratio)
        rows.append((words[operation], *(f"{summary.geometric_mean(of_class[c]):.2f} ({min(of_class[c]):.2f} to {max(of_class[c]):.2f})"
                                         if c in of_class else "" for c in cells.CLASSES[:2])))
    return table(("torch's time / the library's, mean (least to most)", *CLASS_HEADS[:2]), rows)


def paths(records, shapes):
    plain = {cells.cell_of(r): cells.fraction(r) for r in records["bench"] if r["contender"] == "ggm" and
             (r["operation"], r["dtype"], r["variant"]) == ("grouped", "bf16", "plain")}
    rows = []
    for operation, variant, dtype, words in PATHS:
        shares = summary.path_shares(records["paths"], plain, shapes, (operation, variant, dtype))
        if shares:
            rows.append((words, f"{summary.geometric_mean(shares):.2f}", f"{min(shares):.2f}", str(len(shares))))
    return table(("path, training batches", "share of the contiguous bfloat16 product", "least", "cells"), rows)


def plan(records):
    rows = []
    for operation, combine, words in OPERATIONS[:3]:
        ratios = [ratio for (name, _), (ratio, _) in summary.plan_ratios(records["plan"]).items() if name == operation]
        if ratios:
            rows.append((words, f"{summary.geometric_mean(ratios):.3f}", f"{max(ratios):.3f}", str(len(ratios))))
    return table(("planned kernel's time / best forced one's", "mean", "most", "cells"), rows)


def ways_of_layers(records, shapes):
    """[(layer, experts, {(routing, contender): floor / time})] of the up products with 4096 tokens, few experts first."""
    found = {}
    for r in records["bench"]:
        if (r["operation"], r.get("product"), r.get("size_class"), r.get("dtype"), r.get("variant")) != ("grouped", "up", "prefill", "bf16", "plain"):
            continue
        if r["contender"] in dict(WAYS):
            found.setdefault(r["workload"], {})[r["routing"], r["contender"]] = cells.fraction(r)
    return sorted(((layer, shapes[layer]["experts"], values) for layer, values in found.items()), key=lambda one: (one[1], one[0]))


def concepts(records, shapes):
    heads = ("layer", "experts", *(f"{words.split()[0]}: {way}" for _, words in ROUTINGS for _, way in WAYS))
    rows = [(layer, str(experts), *(f"{values[routing, contender]:.2f}" if (routing, contender) in values else "" for routing, _ in ROUTINGS for contender, _ in WAYS))
            for layer, experts, values in ways_of_layers(records, shapes)]
    return f"{of_record(records, 'bench')}; up products of 4096 tokens, bfloat16, floor / time.\n\n" + table(heads, rows)


def draw_ways(records, shapes):
    from plot import COLORS, plt  # the bench's; only here, as it needs matplotlib
    layers = ways_of_layers(records, shapes)
    figure, axes = plt.subplots(1, len(ROUTINGS), figsize=(11, 3.6), sharey=True)
    for axis, (routing, words) in zip(axes, ROUTINGS):
        for i, (contender, way) in enumerate(WAYS):
            bars = [(at + 0.27 * (i - 1), values[routing, contender]) for at, (_, _, values) in enumerate(layers) if (routing, contender) in values]
            axis.bar([at for at, _ in bars], [height for _, height in bars], 0.26, color=COLORS[contender], label=way)
        axis.set_xticks(range(len(layers)), [f"{experts}\n{layer}" for layer, experts, _ in layers], fontsize=7)
        axis.set_title(words, fontsize=10)
        axis.set_ylim(0, 1)
    axes[0].set_ylabel("floor / time")
    figure.suptitle("4096 tokens, up products, over the number of experts", fontsize=11)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.legend(*axes[0].get_legend_handles_labels(), fontsize=8, loc="lower center", ncol=len(WAYS))
    figure.savefig(DOCS / "concepts-ways.png", dpi=110)


def performance(records, shapes):
    devices = sorted({r["device"] for name in RECORDS for r in records[name] if "device" in r})
    dates = sorted({r["date"] for name in RECORDS for r in records[name] if "date" in r})
    return "".join((
        f"Device: {', '.join(devices)}. Date: {', '.join(dates)}.\n\n",
        "### Against the floor\n\n", f"{of_record(records, 'bench')}; bfloat16, geometric means.\n\n", fractions(records, shapes),
        "### Beside cuBLAS in the same run\n\n", f"{of_record(records, 'bench')}; above 1 the library is faster.\n\n", baselines(records, shapes),
        "### Beside torch in the same process\n\n", f"{of_record(records, 'torch')}; above 1 the library is faster.\n\n", torch(records, shapes),
        "### Other paths\n\n", f"{of_record(records, 'paths')}, beside {of_record(records, 'bench')}.\n\n", paths(records, shapes),
        "### The choice of a kernel\n\n", f"{of_record(records, 'plan')}; shapes that the choice was not made on.\n\n", plan(records)))


PAGES = {"performance.md": performance, "concepts.md": concepts}


def with_figures(page, text, figures):
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        sys.exit(f"{page}: the two marks of the figures are not there once each, in order")
    return text[:text.index(BEGIN) + len(BEGIN)] + "\n" + figures + text[text.index(END):]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options = parser.add_mutually_exclusive_group()
    options.add_argument("--check", action="store_true", help="change nothing; exit 1 if a page is not what the records say")
    options.add_argument("--plot", action="store_true", help="draw as well")
    arguments = parser.parse_args()
    records, shapes = {name: read(name) for name in RECORDS}, cells.workloads()
    for page, figures in PAGES.items():
        text = (DOCS / page).read_text(encoding="utf-8")
        wanted = with_figures(page, text, figures(records, shapes))
        if not arguments.check:
            (DOCS / page).write_text(wanted, encoding="utf-8")
        elif wanted != text:
            differing = [line for line in text.splitlines() if line not in wanted.splitlines()]
            print("\n".join(differing[:10]))
            sys.exit(f"{page} is not what the records say; cmake/performance_page.py writes it anew")
        else:
            print(f"{page} has the figures of the records")
    if arguments.plot:
        draw_ways(records, shapes)


if __name__ == "__main__":
    main()
