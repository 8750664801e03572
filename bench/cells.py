"""The cells of the bench and what each asks for: shapes, classes, the rows of the peers, the other paths, work and floor.

Used by the scripts beside it; README.md has the words.
"""
import csv
import json
import pathlib

BENCH = pathlib.Path(__file__).resolve().parent
READ_BYTES_PER_MS = 4.4e9  # the floor's read rate
CLASSES = ("train", "prefill", "decode", "one")
CLASS_NAMES = {"train": "train", "prefill": "prefill 4096", "decode": "decode 16-256", "one": "T = 1"}
SIZE = {"float32": 4, "bf16": 2, "fp16": 2, "int32": 4}
REQUIRED = ("grouped", "grouped_k", "moe_forward", "moe_backward")  # the operations of the main record
PLAN_OPERATIONS = ("grouped", "grouped_k", "moe_forward")           # on the seeded shapes

# What the record of the other paths holds: selections of ggm_bench, of which the cells below are the union. Exact float32 is
# sixteen times slower, so two workloads must do for it.
PATHS = (
    {"operations": ("grouped",), "variants": ("kn", "float32-output", "unaligned"), "classes": ("train",), "routings": ("uniform",)},
    {"operations": ("grouped",), "dtypes": ("fp16",), "classes": ("train",), "routings": ("uniform",)},
    {"operations": ("grouped",), "dtypes": ("float32",), "classes": ("train",), "routings": ("uniform",),
     "workloads": ("qwen3-30b", "olmoe")},
    {"operations": ("grouped_masked", "grouped_general"), "classes": ("train",), "routings": ("equal",)},
    {"operations": ("permute", "unpermute"), "classes": ("train",), "routings": ("uniform",)},
    {"operations": ("route",), "classes": ("decode", "prefill", "train"), "routings": ("uniform", "zipf"),
     "workloads": ("deepseek-v3", "qwen3-30b", "olmoe")},
)


# ---- cells ------------------------------------------------------------------------------------------------------------

def workloads():
    """name -> {up: (n, k), down: (n, k) or None, experts, top_k, train_tokens}, layers and seeded shapes"""
    raw = json.loads((BENCH / "workloads.json").read_text(encoding="utf-8"))
    table = {}
    for name, w in raw["workloads"].items():
        table[name] = {"up": (2 * w["intermediate"], w["hidden"]), "down": (w["hidden"], w["intermediate"]),
                       "experts": w["experts"], "top_k": w["top_k"], "train_tokens": w["train_tokens"]}
    for name, w in {**raw["single"], **seeded_shapes()}.items():
        table[name] = {"up": (w["out_features"], w["in_features"]), "down": None, "experts": w["experts"], "top_k": w["top_k"],
                       "train_tokens": 0}
    return table


def seeded_shapes():
    return json.loads((BENCH / "shapes12.json").read_text(encoding="utf-8"))["shapes"]


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


def path_of(record):
    return (record["operation"], record["dtype"], record["variant"], *cell_of(record))


def path_cells(rows, table):
    """The cells of PATHS, each as path_of names it."""
    found = set()
    for selection in PATHS:
        for operation in selection["operations"]:
            source = operation if operation in REQUIRED else "grouped" if operation.startswith("grouped") else "moe_forward"
            for workload, product, tokens, routing in peer_cells(source, rows, table):
                if size_class(table[workload], tokens) not in selection["classes"]:
                    continue
                if workload not in selection.get("workloads", (workload,)):
                    continue
                if operation in ("grouped_masked", "grouped_general") and routing == "uniform":
                    routing = "equal"  # these two have groups of one size at train sizes
                if operation == "unpermute" and table[workload]["down"]:
                    product = "down"  # the product that writes hidden-wide rows
                if routing not in selection["routings"]:
                    continue
                for dtype in ("int32",) if operation == "route" else selection.get("dtypes", ("bf16",)):
                    for variant in selection.get("variants", ("plain",)):
                        found.add((operation, dtype, variant, workload, product, tokens, routing))
    return found


def path_options():
    """PATHS as options of ggm_bench."""
    options = []
    for selection in PATHS:
        options += ["--and"] if options else []
        for word, values in selection.items():
            options += ["--" + word, ",".join(values)]
    return options


def plan_cells():
    """operation -> cells of the seeded shapes"""
    shapes = seeded_shapes()
    return {operation: {(name, "up", shape["tokens"], "uniform") for name, shape in shapes.items()} for operation in PLAN_OPERATIONS}


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


# ---- records -----------------------------------------------------------------------------------------------------------

def read_records(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def ours(records, contender="ggm"):
    return [r for r in records if r["contender"] == contender]


def describe(record):
    text = "{operation} {workload} {product} T={tokens} {routing} {dtype}".format(**record)
    for word in ("variant", "combine"):
        if record.get(word) not in (None, "", "plain"):
            text += " " + record[word]
    return text
