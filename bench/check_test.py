#!/usr/bin/env python3
"""Tests of check.py and of what it reads, on made-up records: every rule has a record that passes and one that breaks it. Needs Python alone."""
import contextlib
import copy
import io
import json
import math
import pathlib
import tempfile
import unittest

import cells
import check
import shapes12
import summary

TABLE = cells.workloads()
PEERS = cells.peers()
SOURCE = "0123456789ab"


def made_up(operation, cell, combine="", contender="ggm", slower=1.25, row=None, dtype="bf16", variant="plain"):
    """A record that follows from its cell: the dense product at 700 TFLOP/s, the operation `slower` times its floor."""
    workload, product, tokens, routing = cell
    w = TABLE[workload]
    exact = operation in ("route", "permute")
    error = 0.0 if exact else 1e-6 if "float32" in (dtype, variant[:7]) else 1.7e-3
    touched = float(row["experts_touched"]) if row and row["experts_touched"] else float(min(w["experts"], tokens * w["top_k"]))
    record = {"operation": operation, "workload": workload, "product": product, "tokens": tokens, "routing": routing, "dtype": dtype,
              "combine": combine, "variant": variant, "contender": contender, "rows": tokens * w["top_k"], "experts_touched": touched,
              "rounds": 20, "launch": "graph", "rel_err": error, "rel_err_parts": {"d": error}, "workspace_bytes": 0, "source_id": SOURCE,
              "date": "2026-01-01", "device": "made up"}
    record["flops"], record["dense_flops"], record["bytes"] = cells.work(record, TABLE)
    tera = float(row["dense_tflops"]) if row and row["dense_tflops"] else 700.0
    record["dense_ms"] = record["dense_flops"] / (tera * 1e9)
    dense = record["flops"] / record["dense_flops"] * record["dense_ms"] if record["dense_flops"] else 0
    record["floor_ms"] = max(dense, record["bytes"] / 4.4e9)
    record["ms"] = slower * record["floor_ms"]
    record["fraction"] = record["floor_ms"] / record["ms"]
    return record


def full_record():
    records = []
    for operation in cells.REQUIRED:
        for cell, row in cells.peer_cells(operation, PEERS, TABLE).items():
            records += [made_up(operation, cell, combine, row=row) for combine in cells.combines(operation)]
    return records


FULL = full_record()


def faults(records, **kwargs):
    return check.faults_of(records, PEERS, TABLE, SOURCE, **kwargs)


def one(records, operation, size):
    return next(r for r in records if r["operation"] == operation and cells.size_class(TABLE[r["workload"]], r["tokens"]) == size)


def printed(function, *arguments):
    with contextlib.redirect_stdout(io.StringIO()) as text:
        function(*arguments)
    return text.getvalue().splitlines()


class Cells(unittest.TestCase):
    def test_numbers_of_cells_are_the_rows_of_the_file(self):
        counts = {operation: len(cells.peer_cells(operation, PEERS, TABLE)) for operation in cells.REQUIRED}
        for operation in ("grouped", "grouped_k", "moe_forward"):
            rows = [r for r in PEERS if r["operation"] == operation and r["dtype"] == "bf16"]
            self.assertEqual(counts[operation], len(rows))
        large = [r for r in PEERS if r["operation"] == "moe_forward" and int(r["tokens"]) >= 4096]
        self.assertEqual(counts["moe_backward"], len(large))

    def test_rows_of_the_file_are_those_of_the_workloads(self):
        for row in PEERS:
            workload = TABLE[row["workload"]]
            self.assertEqual(int(row["rows"]), int(row["tokens"]) * workload["top_k"])

    def test_a_full_record_has_no_fault(self):
        self.assertEqual(faults(FULL), [])

    def test_a_missing_cell(self):
        for index in (0, len(FULL) // 2, len(FULL) - 1):
            found = faults(FULL[:index] + FULL[index + 1:])
            self.assertEqual(len(found), 1)
            self.assertTrue(found[0].startswith("missing cell"))
            self.assertEqual(faults(FULL[:index] + FULL[index + 1:], partial=True), [])

    def test_the_ordered_combine_is_wanted_too(self):
        found = faults([r for r in FULL if r["combine"] != "ordered"])
        self.assertEqual(len(found), len(cells.peer_cells("moe_forward", PEERS, TABLE)))

    def test_an_operation_that_is_not_there_at_all(self):
        found = faults([r for r in FULL if r["operation"] != "grouped_k"])
        self.assertEqual(len(found), len(cells.peer_cells("grouped_k", PEERS, TABLE)))

    def test_an_extra_cell(self):
        for partial in (False, True):
            found = faults(FULL + [made_up("grouped", ("olmoe", "up", 128, "uniform"))], partial=partial)
            self.assertEqual([f.split(":")[0] for f in found], ["extra cell"])

    def test_a_cell_twice(self):
        self.assertEqual([f.split(":")[0] for f in faults(FULL + FULL[:1])], ["cell twice"])

    def test_a_combine_that_does_not_exist(self):
        cell = ("olmoe", "up", 4096, "uniform")
        self.assertIn("extra cell: moe_forward with combine 'other'", faults(FULL + [made_up("moe_forward", cell, "other")]))

    def test_baselines_and_other_dtypes_are_not_cells_of_ours(self):
        extra = made_up("grouped", ("olmoe", "up", 4096, "uniform"), contender="cuBLAS loop")
        other = dict(made_up("grouped", ("olmoe", "up", 4096, "uniform")), dtype="fp16")
        self.assertEqual(faults(FULL + [extra, other]), [])


class Numbers(unittest.TestCase):
    def changed(self, operation="grouped", size="train", **fields):
        records = copy.deepcopy(FULL)
        one(records, operation, size).update(fields)
        return faults(records)

    def test_the_floor_by_hand(self):
        # olmoe up at 32768 tokens: S = 262144, N = K = 2048, 64 experts.
        record = made_up("grouped", ("olmoe", "up", 32768, "uniform"))
        self.assertEqual(record["flops"], 2 * 262144 * 2048 * 2048)
        self.assertEqual(record["bytes"], 2 * (64 * 2048 * 2048 + 2 * 262144 * 2048))
        record["dense_ms"] = 3.0
        self.assertEqual(cells.floor_ms(record), 3.0)
        record["dense_ms"] = 1e-3
        self.assertAlmostEqual(cells.floor_ms(record), record["bytes"] / 4.4e9)

    def test_the_backward_has_two_products(self):
        record = made_up("moe_backward", ("olmoe", "up", 32768, "uniform"))
        record["dense_ms"] = 3.0
        self.assertAlmostEqual(cells.floor_ms(record), 6.0)

    def test_the_forward_moves_tokens_and_not_rows(self):
        record = made_up("moe_forward", ("olmoe", "up", 1, "uniform"), "auto")
        self.assertEqual(record["bytes"], 8 * 2048 * 2048 * 2 + 2 * 2048 * 2 + 2 * 8 * 4)

    def test_one_fault_a_wrong_number(self):
        right = one(FULL, "grouped", "train")
        for field in ("flops", "bytes"):
            found = self.changed(**{field: right[field] * 1.5})
            self.assertTrue(any(f" {field} = " in f for f in found), found)
        for field in ("floor_ms", "fraction"):
            found = self.changed(**{field: right[field] * 1.01})
            self.assertEqual(len(found), 1)
            self.assertIn(field, found[0])

    def test_a_flattering_time(self):
        found = self.changed(ms=0.9 * one(FULL, "grouped", "train")["ms"])
        self.assertEqual(len(found), 1)
        self.assertIn("fraction", found[0])

    def test_a_time_that_is_not_one(self):
        self.assertTrue(self.changed(ms=0))
        self.assertTrue(self.changed(ms=None))

    def test_no_dense_product(self):
        self.assertTrue(any("no dense_ms" in f for f in self.changed(dense_ms=None)))

    def test_a_plain_launch(self):
        self.assertEqual(len(self.changed(launch="direct")), 1)

    def test_too_few_rounds(self):
        self.assertEqual(len(self.changed(rounds=19)), 1)


class Evidence(unittest.TestCase):
    def test_a_stale_source(self):
        found = check.faults_of(FULL, PEERS, TABLE, "ba9876543210")
        self.assertEqual(len(found), 1)
        self.assertTrue(found[0].startswith("stale"))
        records = copy.deepcopy(FULL)
        records[-1]["source_id"] = ""
        self.assertEqual(len(faults(records)), 1)

    def slower_dense(self, factor):
        records = copy.deepcopy(FULL)
        record = one(records, "grouped", "train")
        record["dense_ms"] *= factor
        record["floor_ms"] = cells.floor_ms(record)
        record["fraction"] = record["floor_ms"] / record["ms"]
        return faults(records)

    def test_a_dense_rate_more_than_8_percent_below_the_table(self):
        self.assertEqual(self.slower_dense(1.08), [])
        found = self.slower_dense(1.10)
        self.assertEqual(len(found), 1)
        self.assertIn("dense rate", found[0])
        self.assertEqual(self.slower_dense(0.8), [])  # faster only lowers the fraction

    def test_another_number_of_experts(self):
        records = copy.deepcopy(FULL)
        record = one(records, "grouped", "decode")
        record["experts_touched"] *= 0.9
        record["bytes"] = cells.work(record, TABLE)[2]
        record["floor_ms"] = cells.floor_ms(record)
        record["fraction"] = record["floor_ms"] / record["ms"]
        found = faults(records)
        self.assertEqual(len(found), 1)
        self.assertIn("experts touched", found[0])

    def error(self, operation, parts):
        records = copy.deepcopy(FULL)
        one(records, operation, "train").update(rel_err=max((e for e in parts.values() if e != "not finite"), default=0),
                                                rel_err_parts=parts)
        return len(faults(records))

    def test_errors_have_limits(self):
        self.assertEqual(self.error("grouped", {"d": 1.9e-3}), 0)
        self.assertEqual(self.error("grouped", {"d": 2.1e-3}), 1)
        self.assertEqual(self.error("grouped_k", {"d": 2.1e-3}), 1)
        self.assertEqual(self.error("moe_forward", {"d": 2.5e-3}), 0)
        self.assertEqual(self.error("moe_forward", {"d": 2.7e-3}), 1)
        self.assertEqual(self.error("moe_backward", {"dx": 2.4e-3, "d_weight": 2.4e-3, "d_routing_weights": 1e-6}), 0)
        self.assertEqual(self.error("moe_backward", {"dx": 2.4e-3, "d_weight": 2.4e-3, "d_routing_weights": 1e-3}), 1)

    def test_an_error_that_is_not_a_number(self):
        self.assertEqual(self.error("grouped", {"d": "not finite"}), 1)
        self.assertEqual(self.error("grouped", {"d": float("nan")}), 1)

    def test_a_result_that_was_not_checked(self):
        records = copy.deepcopy(FULL)
        one(records, "grouped", "train").update(rel_err=None, rel_err_parts={})
        self.assertEqual(len(faults(records)), 1)


class Summary(unittest.TestCase):
    def test_geometric_means(self):
        self.assertAlmostEqual(summary.geometric_mean([0.5, 2.0, 1.0]), 1.0)
        for value, count in summary.means(FULL, TABLE).values():
            self.assertAlmostEqual(value, 0.8)
            self.assertGreater(count, 0)

    def test_the_mean_is_recomputed_and_not_read(self):
        records = copy.deepcopy(FULL)
        for record in records:
            record["fraction"] = 1.0
        self.assertAlmostEqual(summary.means(records, TABLE)["grouped", "", "train"][0], 0.8)

    def test_every_bar_has_cells(self):
        for key in summary.BARS:
            self.assertIn(key, summary.means(FULL, TABLE))

    def test_the_slowest_cell_against_its_peer(self):
        records = copy.deepcopy(FULL)
        record = one(records, "grouped", "train")
        peer = float(cells.peer_cells("grouped", PEERS, TABLE)[cells.cell_of(record)]["ms"])
        record["ms"] = 3 * peer
        ratio, worst = summary.slowest(records, PEERS, TABLE, "grouped", "", "train")
        self.assertAlmostEqual(ratio, 3.0)
        self.assertEqual(cells.cell_of(worst), cells.cell_of(record))

    def test_dense_rates_beside_the_table(self):
        records = copy.deepcopy(FULL)
        for record in records:
            row = cells.peer_cells(record["operation"], PEERS, TABLE)[cells.cell_of(record)]
            if row["dense_tflops"]:
                record["dense_ms"] = record["dense_flops"] / float(row["dense_tflops"]) * 1e-9
        one(records, "grouped", "train")["dense_ms"] *= 0.8
        rates = summary.dense_rates(records, PEERS, TABLE)
        self.assertEqual(set(rates), {"prefill", "train"})
        self.assertAlmostEqual(max(rates["train"]), 1.25)
        self.assertAlmostEqual(min(rates["train"]), 1.0)
        self.assertAlmostEqual(max(rates["prefill"]), 1.0)

    def test_no_peer_for_the_backward(self):
        self.assertIsNone(summary.slowest(FULL, PEERS, TABLE, "moe_backward", "", "train"))

    def test_printing_takes_every_operation(self):
        more = [made_up("grouped", ("olmoe", "up", 32768, "uniform"), contender="cuBLAS loop"), *BANDWIDTH, *FULL_PATHS]
        summary.print_means(FULL, PEERS, TABLE)
        summary.print_dense_rates(FULL + more, PEERS, TABLE)
        summary.print_baselines(FULL + more, TABLE)
        summary.print_relations(FULL + more, FULL + more, TABLE)
        summary.print_plan(FULL_PLAN)
        summary.print_torch(FULL_TORCH, TABLE)
        self.assertTrue(all(math.isfinite(value) for value, _ in summary.means(FULL + more, TABLE).values()))


BANDWIDTH = [{"operation": "bandwidth", "contender": name, "ms": ms, "bytes": 8e9, "source_id": SOURCE, "rounds": 20}
             for name, ms in (("copy", 3.0), ("copy kernel", 2.0), ("read", 1.0))]
FULL_PATHS = [made_up(operation, cell, dtype=dtype, variant=variant)
              for operation, dtype, variant, *cell in sorted(cells.path_cells(PEERS, TABLE))]


class Paths(unittest.TestCase):
    def faults(self, records, **kwargs):
        return check.path_faults(records, PEERS, TABLE, SOURCE, **kwargs)

    def line(self, lines, word):
        found = [line for line in lines if line.split()[:len(word.split())] == word.split()]
        self.assertEqual(len(found), 1, lines)
        return found[0]

    def test_a_full_record_has_no_fault(self):
        self.assertEqual(self.faults(FULL_PATHS + BANDWIDTH), [])

    def test_every_path_with_a_bar_is_among_the_cells(self):
        found = {(operation, variant, dtype) for operation, dtype, variant, *_ in cells.path_cells(PEERS, TABLE)}
        for path in (*summary.PATH_BARS, ("permute", "plain", "bf16"), ("unpermute", "plain", "bf16"), ("grouped", "plain", "float32")):
            self.assertIn(path, found)
        rows = {r["rows"] for r in FULL_PATHS if r["operation"] == "route"}
        self.assertLessEqual({2048, 32768, 262144}, rows)

    def test_rows_are_moved_where_they_are_as_wide_as_the_model(self):
        for operation, product in (("permute", "up"), ("unpermute", "down")):
            found = [r for r in FULL_PATHS if r["operation"] == operation]
            self.assertEqual(len(found), 6)
            self.assertEqual({r["product"] for r in found}, {product})

    def test_missing_extra_and_doubled_paths(self):
        self.assertEqual([f.split(":")[0] for f in self.faults(FULL_PATHS[1:])], ["missing cell"])
        self.assertEqual(self.faults(FULL_PATHS[1:], partial=True), [])
        self.assertEqual([f.split(":")[0] for f in self.faults(FULL_PATHS + FULL_PATHS[:1])], ["cell twice"])
        extra = made_up("grouped", ("olmoe", "up", 4096, "uniform"), dtype="fp16")
        self.assertEqual([f.split(":")[0] for f in self.faults(FULL_PATHS + [extra])], ["extra cell"])

    def test_wrong_rows_and_ids(self):
        for operation in ("route", "permute"):
            records = copy.deepcopy(FULL_PATHS)
            next(r for r in records if r["operation"] == operation)["rel_err_parts"] = {"indices": 1e-9}
            self.assertEqual(len(self.faults(records)), 1)

    def test_the_options_name_every_selection(self):
        words = cells.path_options()
        self.assertEqual(words.count("--and") + 1, len(cells.PATHS))
        self.assertEqual(words.count("--operations"), len(cells.PATHS))

    def test_shares_are_taken_cell_by_cell(self):
        # Twice as slow as the plain product in one of twelve cells, equally fast in the others.
        records = [r for r in copy.deepcopy(FULL_PATHS) if r["variant"] == "kn"]
        records[0]["ms"] *= 2
        line = self.line(summary.path_lines(records, FULL, TABLE), "grouped kn bf16")
        self.assertIn(f" {len(records)} cells", line)
        self.assertIn(f"{0.5 ** (1 / len(records)):.3f} of grouped bf16, least 0.50", line)
        self.assertIn("reached", line)
        for r in records:
            r["ms"] *= 1.2
        self.assertIn("missed", self.line(summary.path_lines(records, FULL, TABLE), "grouped kn bf16"))

    def test_groups_of_one_size_stand_beside_uniform_routing(self):
        records = [r for r in FULL_PATHS if r["operation"] == "grouped_masked"]
        self.assertEqual({r["routing"] for r in records}, {"equal"})
        self.assertIn(f" {len(records)} cells", self.line(summary.path_lines(records, FULL, TABLE), "grouped_masked plain bf16"))

    def test_moves_are_held_to_the_faster_copy(self):
        self.assertEqual(summary.copy_rate(BANDWIDTH), 4e9)
        records = [r for r in copy.deepcopy(FULL_PATHS) if r["operation"] == "permute"]
        for r in records:
            r["ms"] = r["bytes"] / (0.9 * 4e9)
        self.assertIn("0.900 of copy bandwidth, least 0.90    0.850  reached", summary.move_lines(records + BANDWIDTH, TABLE)[0])
        self.assertEqual(summary.move_lines(records, TABLE), [])

    def test_float32_is_held_to_cublas(self):
        records = [r for r in copy.deepcopy(FULL_PATHS) if r["dtype"] == "float32"]
        for r in records:
            r["ms"] = r["dense_ms"] / 0.94
        self.assertIn("0.940 of cuBLAS    0.950  missed", summary.float32_lines(records, TABLE)[0])

    def test_routes_have_a_bar_for_each_size(self):
        records = [dict(r, ms=0.0199) for r in FULL_PATHS if r["operation"] == "route"]
        lines = summary.route_lines(records)
        self.assertEqual([line.split()[-1] for line in lines], ["missed", "reached", "reached"])
        self.assertEqual(sum(int(line[:50].split()[-2]) for line in lines), len(records))


FULL_PLAN = [made_up(operation, cell, cells.combines(operation)[0], contender, slower)
             for operation, shapes in cells.plan_cells().items() for cell in sorted(shapes)
             for contender, slower in (("ggm", 1.3), ("ggm:small", 1.25), ("ggm:large", 1.6))]


class Plan(unittest.TestCase):
    def faults(self, records, **kwargs):
        return check.plan_faults(records, TABLE, SOURCE, **kwargs)

    def test_the_file_of_shapes_follows_from_its_rule(self):
        self.assertEqual(cells.seeded_shapes(), shapes12.shapes())

    def test_shapes_are_none_of_the_workloads(self):
        self.assertEqual(len(cells.seeded_shapes()), 12)
        for shape in cells.seeded_shapes().values():
            self.assertTrue(12 <= shape["experts"] <= 300 and 700 <= shape["tokens"] <= 20000 and 1 <= shape["top_k"] <= 8)
            for features in (shape["out_features"], shape["in_features"]):
                self.assertTrue(features % 8 == 0 and features % 64 != 0)

    def test_a_full_record_has_no_fault(self):
        self.assertEqual(self.faults(FULL_PLAN), [])

    def test_a_missing_shape_and_a_shape_without_forced_kernels(self):
        self.assertEqual([f.split(":")[0] for f in self.faults(FULL_PLAN[3:])], ["missing cell"])
        self.assertEqual(self.faults(FULL_PLAN[3:], partial=True), [])
        self.assertEqual([f.split(":")[0] for f in self.faults(FULL_PLAN[:1] + FULL_PLAN[3:])], ["no forced kernel"])

    def test_a_forced_kernel_must_be_right_too(self):
        records = copy.deepcopy(FULL_PLAN)
        records[1]["rel_err_parts"] = {"d": 0.1}
        self.assertEqual(len(self.faults(records)), 1)

    def test_the_ratio_is_to_the_best_forced_kernel(self):
        found = summary.plan_ratios(FULL_PLAN)
        self.assertEqual(len(found), 12 * len(cells.PLAN_OPERATIONS))
        for ratio, best in found.values():
            self.assertAlmostEqual(ratio, 1.3 / 1.25)
            self.assertEqual(best, "small")

    def test_the_worst_shape_is_held_to_the_bar(self):
        records = copy.deepcopy(FULL_PLAN)
        slow = next(r for r in records if r["operation"] == "grouped_k" and r["contender"] == "ggm")
        slow["ms"] *= 1.1
        verdicts = {line.split()[0]: line.split()[-1] for line in printed(summary.print_plan, records) if " cells, " in line}
        self.assertEqual(verdicts, {"grouped": "reached", "grouped_k": "missed", "moe_forward": "reached"})


def torch_record(contender, cell, ms, operation="grouped"):
    return {"operation": operation, **dict(zip(("workload", "product", "tokens", "routing"), cell)), "contender": contender, "ms": ms,
            "rounds": 20, "source_id": SOURCE}


FULL_TORCH = [torch_record(contender, cell, ms) for cell in sorted(cells.peer_cells("grouped", PEERS, TABLE)) if cell[2] >= 4096
              for contender, ms in (("ggm", 1.0), ("torch", 1.2))]
FULL_TORCH.append({"operation": "values", "what": "grouped", "error": 1e-6, "limit": 2e-5, "source_id": SOURCE})


class Torch(unittest.TestCase):
    def test_a_full_record_has_no_fault(self):
        self.assertEqual(check.torch_faults(FULL_TORCH, SOURCE), [])

    def test_stale_or_wrong_values_or_few_rounds_or_no_values(self):
        self.assertEqual(len(check.torch_faults(FULL_TORCH, "ba9876543210")), 1)
        self.assertEqual(len(check.torch_faults(FULL_TORCH + [dict(FULL_TORCH[-1], error=3e-5)], SOURCE)), 1)
        self.assertEqual(len(check.torch_faults(FULL_TORCH + [dict(FULL_TORCH[-1], error=float("nan"))], SOURCE)), 1)
        self.assertEqual(len(check.torch_faults([dict(FULL_TORCH[0], rounds=19)] + FULL_TORCH[1:], SOURCE)), 1)
        self.assertEqual(len(check.torch_faults(FULL_TORCH[:-1], SOURCE)), 1)

    def test_ratios(self):
        found = summary.torch_ratios(FULL_TORCH)
        self.assertEqual(set(found), {"grouped"})
        self.assertTrue(all(abs(ratio - 1.2) < 1e-12 for ratio in found["grouped"].values()))

    def test_means_and_least_cells_are_held_to_their_bars(self):
        lines = [line for line in printed(summary.print_torch, FULL_TORCH, TABLE) if line.startswith("  grouped ") and " cells " in line]
        self.assertEqual([line.count("reached") for line in lines], [2, 1])  # 1.2 is above 1.12 and 1.00; below 1.25, above 1.10
        few = sum(1 for r in FULL_TORCH if r.get("contender") == "ggm" and r["tokens"] == 4096 and TABLE[r["workload"]]["experts"] >= 64)
        self.assertIn(f" {few} cells", lines[1])


class Relations(unittest.TestCase):
    def test_portable_kernels_stand_beside_the_choice(self):
        cell = ("olmoe", "up", 32768, "uniform")
        twice = [dict(r, contender="ggm-portable", ms=2 * r["ms"], fraction=r["fraction"] / 2)
                 for r in FULL if cells.cell_of(r) == cell and r["combine"] != "ordered"]
        lines = summary.portable_lines(FULL + twice, TABLE)
        self.assertEqual(len(lines), len(cells.REQUIRED))
        self.assertTrue(all("2.000, 2.00 to 2.00" in line for line in lines), lines)
        self.assertEqual(faults(FULL + twice), [])

    def test_the_backward_is_held_to_the_forward(self):
        records = copy.deepcopy(FULL)
        for r in records:
            if r["operation"] == "moe_backward":
                r["ms"] *= 2
        for given, verdict in ((FULL, "reached"), (records, "missed")):
            line = next(line for line in summary.relation_lines(given, TABLE) if "moe_backward over moe_forward, train" in line)
            self.assertTrue(line.endswith(verdict), line)


class Files(unittest.TestCase):
    def test_records_of_other_kinds_lie_beside_the_record(self):
        with tempfile.TemporaryDirectory() as folder:
            record = pathlib.Path(folder) / "bench-h200.jsonl"
            record.write_text("")
            self.assertEqual(check.beside(record, "paths"), [])
            (record.parent / "paths-h200.jsonl").write_text(json.dumps(FULL_PATHS[0]) + "\n\n")
            self.assertEqual(check.beside(record, "paths"), FULL_PATHS[:1])
            self.assertEqual(check.beside(record.parent / "other.jsonl", "paths"), [])


if __name__ == "__main__":
    unittest.main(buffer=True)
