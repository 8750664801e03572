"""What check.py prints of the records, beside what has to be reached."""
import math

from cells import (CLASS_NAMES, CLASSES, REQUIRED, cell_of, combines, describe, fraction, ours, peer_cells, size_class)

SLOWER_THAN_PEER = 1.05

# floor / time, geometric mean, bf16: (operation, combine, class) -> to reach.
BARS = {
    ("grouped", "", "train"): 0.97, ("grouped", "", "prefill"): 0.88, ("grouped", "", "decode"): 0.96, ("grouped", "", "one"): 0.86,
    ("moe_forward", "auto", "train"): 0.92, ("moe_forward", "auto", "prefill"): 0.82,
    ("moe_forward", "auto", "decode"): 0.95, ("moe_forward", "auto", "one"): 0.80,
    ("moe_forward", "ordered", "train"): 0.84, ("moe_forward", "ordered", "prefill"): 0.60,
    ("grouped_k", "", "train"): 0.95, ("grouped_k", "", "prefill"): 0.82,
    ("moe_backward", "", "train"): 0.86, ("moe_backward", "", "prefill"): 0.74,
}
# Against the plain bf16 contiguous product on the same shapes at train sizes: (operation, variant, dtype) -> share of its fraction.
PATH_BARS = {
    ("grouped", "kn", "bf16"): 0.9, ("grouped", "plain", "fp16"): 0.9, ("grouped", "float32-output", "bf16"): 0.9,
    ("grouped_masked", "plain", "bf16"): 0.9, ("grouped_general", "plain", "bf16"): 0.9, ("grouped", "unaligned", "bf16"): 0.4,
}
MOVE_BAR = 0.85  # permute and unpermute, of copy bandwidth
ROUTE_BARS_US = ((2048, 6), (32768, 20), (262144, 40))
FLOAT32_BAR = 0.95   # of cuBLAS in the same run
BACKWARD_BAR = 2.2   # moe_backward over moe_forward, at most
FUSED_BAR = 0.85     # moe_forward's rate over that of the library's own bare product
PLAN_BAR = 1.07      # the planned kernel over the best forced one, at most
TORCH_BARS = {"train": (1.12, 1.00), "prefill": (1.25, 1.10)}  # of grouped: geometric mean, least; prefill with 64 experts or more
TORCH_EXPERTS = 64


def geometric_mean(values):
    values = list(values)
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else float("nan")


def mark(value, bar):
    return "" if bar is None else f"{bar:8.3f}  {'reached' if value >= bar else 'missed'}"


def at_most(value, bar):
    return f"bar {bar}  {'reached' if value <= bar else 'missed'}"


def class_of(record, table):
    return size_class(table[record["workload"]], record["tokens"])


# ---- the main record -----------------------------------------------------------------------------------------------------

def means(records, table, contender="ggm", dtype="bf16", variant="plain"):
    """(operation, combine, class) -> (geometric mean of the fraction, cells)"""
    groups = {}
    for r in records:
        if r["operation"] == "bandwidth" or (r["contender"], r["dtype"], r["variant"]) != (contender, dtype, variant):
            continue
        groups.setdefault((r["operation"], r["combine"], class_of(r, table)), []).append(fraction(r))
    return {key: (geometric_mean(values), len(values)) for key, values in groups.items()}


def slowest(records, rows, table, operation, combine, wanted):
    """(time over the best peer's, record) of the worst cell of a group; None when no cell has a peer."""
    if operation == "moe_backward":
        return None  # the peers' file has no such rows, only its cells
    cells = peer_cells(operation, rows, table) if operation in REQUIRED else {}
    ratios = [(r["ms"] / float(cells[cell_of(r)]["ms"]), i, r) for i, r in enumerate(ours(records))
              if (r["operation"], r["combine"], r["dtype"], r["variant"]) == (operation, combine, "bf16", "plain") and
              class_of(r, table) == wanted and cell_of(r) in cells]
    return max(ratios)[::2] if ratios else None


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


def dense_rates(records, rows, table):
    """class -> the dense product's rate beside our bf16 cells over the rate that the peers' table says"""
    found = {}
    for r in ours(records):
        if r["operation"] not in REQUIRED or r["dtype"] != "bf16" or not r["dense_ms"]:
            continue
        said = peer_cells(r["operation"], rows, table).get(cell_of(r), {}).get("dense_tflops")
        if said:
            found.setdefault(class_of(r, table), []).append(r["dense_flops"] / r["dense_ms"] * 1e-9 / float(said))
    return {wanted: found[wanted] for wanted in CLASSES if wanted in found}


def print_dense_rates(records, rows, table):
    print("\nthe dense product's rate over the table's (what flatters is a slower one; 4096 tokens are held near 1 by rests)")
    for wanted, values in dense_rates(records, rows, table).items():
        print(f"  {CLASS_NAMES[wanted]:14s} {len(values):5d} cells, mean {geometric_mean(values):.3f}, {min(values):.3f} to {max(values):.3f}")


def print_baselines(records, table):
    names = sorted({r["contender"] for r in records if r["operation"] != "bandwidth" and not r["contender"].startswith("ggm")})
    print("\nbaselines of the same run, floor / time over the cells that each took")
    for name in names:
        for (operation, combine, wanted), (value, count) in sorted(means(records, table, name).items()):
            print(f"  {name:32s} {operation:16s} {CLASS_NAMES[wanted]:14s} {count:5d} {value:8.3f}")


def times(records, operation, combine="", contender="ggm"):
    """cell -> ms of the plain bf16 form"""
    return {cell_of(r): r["ms"] for r in ours(records, contender)
            if (r["operation"], r["combine"], r["dtype"], r["variant"]) == (operation, combine, "bf16", "plain")}


def ratios_by_class(above, below, table):
    """class -> the ratios above / below of the cells that both have"""
    groups = {}
    for cell in above:
        if cell in below:
            groups.setdefault(size_class(table[cell[0]], cell[2]), []).append(above[cell] / below[cell])
    return {wanted: groups[wanted] for wanted in CLASSES if wanted in groups}


def skew_lines(records, table):
    """Zipf over uniform at train sizes: at most 1.05."""
    lines = []
    for operation in REQUIRED:
        for combine in combines(operation):
            of = {cell: ms for cell, ms in times(records, operation, combine).items() if size_class(table[cell[0]], cell[2]) == "train"}
            ratios = [ms / of[cell[:3] + ("uniform",)] for cell, ms in of.items() if cell[3] == "zipf" and cell[:3] + ("uniform",) in of]
            if ratios:
                name = f"{operation} {combine}".strip() + ", zipf over uniform"
                lines.append(f"  {name:40s} {len(ratios):5d} cells {max(ratios):8.3f} at most, {at_most(max(ratios), 1.05)}")
    return lines


def relation_lines(records, table):
    """Ratios of our own operations on the same cell: backward over forward, bare product over fused forward."""
    forward, lines = times(records, "moe_forward", "auto"), []
    for wanted, ratios in ratios_by_class(times(records, "moe_backward"), forward, table).items():
        mean, name = geometric_mean(ratios), f"moe_backward over moe_forward, {wanted}"
        lines.append(f"  {name:40s} {len(ratios):5d} cells {mean:8.3f}, {min(ratios):.2f} to {max(ratios):.2f}, {at_most(mean, BACKWARD_BAR)}")
    for wanted, ratios in ratios_by_class(times(records, "grouped"), forward, table).items():
        mean, name = geometric_mean(ratios), f"grouped over moe_forward, {wanted}"
        lines.append(f"  {name:40s} {len(ratios):5d} cells {mean:8.3f}, least {min(ratios):.2f} {mark(mean, FUSED_BAR)}")
    return lines


def portable_lines(records, table):
    """The library's choice beside its portable kernels in the same rounds."""
    lines = []
    for operation in REQUIRED:
        combine = combines(operation)[0]
        portable = times(records, operation, combine, "ggm-portable")
        for wanted, ratios in ratios_by_class(portable, times(records, operation, combine), table).items():
            name = f"{operation}, ggm-portable over ggm, {wanted}"
            lines.append(f"  {name:48s} {len(ratios):5d} cells {geometric_mean(ratios):8.3f}, {min(ratios):.2f} to {max(ratios):.2f}")
    return lines


# ---- the other paths -----------------------------------------------------------------------------------------------------

def copy_rate(records):
    """Bytes a millisecond of the faster way to copy; None when the record has none."""
    return max((r["bytes"] / r["ms"] for r in records if r["operation"] == "bandwidth" and r["contender"].startswith("copy")), default=None)


# Paths that the portable kernels serve whatever the card, so that their bar is against the portable contiguous product.
PORTABLE_PATHS = (("grouped_general", "plain"), ("grouped", "unaligned"))


def path_shares(records, plain, table, path):
    """Fractions of one path over those of the contiguous product, cell by cell; groups of one size beside uniform routing."""
    shares = []
    for r in ours(records):
        workload, product, tokens, routing = cell_of(r)
        cell = (workload, product, tokens, "uniform" if routing == "equal" else routing)
        if (r["operation"], r["variant"], r["dtype"]) == path and class_of(r, table) == "train" and cell in plain:
            shares.append(fraction(r) / plain[cell])
    return shares


def path_lines(records, base, table):
    """Shares of the plain bf16 contiguous product of the same family of kernels, which has the bar, and of the library's own."""
    def plain(contender):
        return {cell_of(r): fraction(r) for r in base if r["contender"] == contender and (r["operation"], r["dtype"], r["variant"]) == ("grouped", "bf16", "plain")}
    own, portable, lines = plain("ggm"), plain("ggm-portable"), []
    for path, bar in PATH_BARS.items():
        of_portable = path[:2] in PORTABLE_PATHS
        for whole, of, mine in ((portable, "portable grouped bf16", of_portable), (own, "grouped bf16", not of_portable)):
            shares = path_shares(records, whole, table, path)
            if not shares or (not mine and whole is portable):
                continue
            mean = geometric_mean(shares)
            lines.append(f"  {' '.join(path):40s} {len(shares):5d} cells {mean:8.3f} of {of}, least {min(shares):.2f} {mark(mean, bar) if mine else ''}".rstrip())
    return lines


def move_lines(records, table):
    copy, lines = copy_rate(records), []
    for operation in ("permute", "unpermute"):
        values = [r["bytes"] / r["ms"] / copy for r in ours(records) if copy and r["operation"] == operation and class_of(r, table) == "train"]
        if values:
            share = geometric_mean(values)
            lines.append(f"  {operation:40s} {len(values):5d} cells {share:8.3f} of copy bandwidth, least {min(values):.2f} {mark(share, MOVE_BAR)}")
    return lines


def float32_lines(records, table):
    """The dense product is cuBLAS on the same rows in the same run."""
    values = [r["dense_ms"] / r["ms"] for r in ours(records) if r["operation"] == "grouped" and r["dtype"] == "float32" and
              r["variant"] == "plain" and class_of(r, table) == "train"]
    share = geometric_mean(values)
    return [f"  {'grouped float32':40s} {len(values):5d} cells {share:8.3f} of cuBLAS {mark(share, FLOAT32_BAR)}"] if values else []


def route_lines(records):
    lines = []
    for index, (rows, bar) in enumerate(ROUTE_BARS_US):
        least = ROUTE_BARS_US[index - 1][0] if index else 0
        us = [1e3 * r["ms"] for r in ours(records) if r["operation"] == "route" and least < r["rows"] <= rows]
        if us:
            name = f"route, {least} < S <= {rows}"
            lines.append(f"  {name:40s} {len(us):5d} cells {max(us):8.2f} us at most, {at_most(max(us), bar)}")
    return lines


def print_relations(records, paths, table):
    """`paths` may be the same records, or those of a file of their own; the figures that they are shares of are in `records`."""
    lines = path_lines(paths, records, table) + float32_lines(paths, table) + move_lines(paths, table) + route_lines(paths)
    lines += skew_lines(records, table) + relation_lines(records, table) + portable_lines(records, table)
    if lines:
        print("\nother paths and relations")
        print("\n".join(lines))


# ---- the plan's choice ---------------------------------------------------------------------------------------------------

def plan_ratios(records):
    """(operation, cell) -> (planned / best forced, name of the best)"""
    forced, planned = {}, {}
    for r in records:
        if r["operation"] == "bandwidth" or r["combine"] == "ordered":
            continue
        key = (r["operation"], cell_of(r))
        if r["contender"] == "ggm":
            planned[key] = r["ms"]
        elif r["contender"].startswith("ggm:"):
            forced.setdefault(key, []).append((r["ms"], r["contender"][len("ggm:"):]))
    return {key: (ms / min(forced[key])[0], min(forced[key])[1]) for key, ms in planned.items() if key in forced}


def print_plan(records):
    found = plan_ratios(records)
    print("\nthe planned kernel over the best forced one, shapes of shapes12.json")
    for operation in sorted({key[0] for key in found}):
        ratios = {cell: ratio for (name, cell), ratio in found.items() if name == operation}
        worst = max(ratios, key=lambda cell: ratios[cell][0])
        value, best = ratios[worst]
        print(f"  {operation:24s} {len(ratios):5d} cells, mean {geometric_mean(r for r, _ in ratios.values()):.3f}, at most {value:.3f} "
              f"({worst[0]}, best {best}), {at_most(value, PLAN_BAR)}")


# ---- beside torch --------------------------------------------------------------------------------------------------------

def torch_ratios(records):
    """operation -> {cell: torch's time over ours}"""
    both = {}
    for r in records:
        if r["operation"] != "values":
            both.setdefault((r["operation"], cell_of(r)), {})[r["contender"]] = r["ms"]
    found = {}
    for (operation, cell), ms in both.items():
        if "ggm" in ms and "torch" in ms:
            found.setdefault(operation, {})[cell] = ms["torch"] / ms["ggm"]
    return found


def print_torch(records, table):
    print("\ntorch's time over the library's")
    for operation, cells in torch_ratios(records).items():
        for wanted in ("train", "prefill"):
            ratios = {cell: ratio for cell, ratio in cells.items() if size_class(table[cell[0]], cell[2]) == wanted and
                      (wanted == "train" or operation != "grouped" or table[cell[0]]["experts"] >= TORCH_EXPERTS)}
            if not ratios:
                continue
            mean, least = geometric_mean(ratios.values()), min(ratios, key=ratios.get)
            bar = least_bar = ""
            if operation == "grouped":
                bar, least_bar = mark(mean, TORCH_BARS[wanted][0]), mark(ratios[least], TORCH_BARS[wanted][1])
            print(f"  {operation:16s} {CLASS_NAMES[wanted]:14s} {len(ratios):5d} cells {mean:8.3f} {bar:18s} "
                  f"least {ratios[least]:.3f} {least_bar} {' '.join(map(str, least))}")
    for r in records:
        if r["operation"] == "values":
            print(f"  {r['what']:48s} error {r['error']:.2e}, limit {r['limit']:.0e}")
