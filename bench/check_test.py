#!/usr/bin/env python3
"""Tests of check.py on made-up records: every rule has a record that passes and one that breaks it. Needs Python alone."""
import copy
import math
import unittest

import check

TABLE = check.workloads()
PEERS = check.peers()
SOURCE = "0123456789ab"


def made_up(operation, cell, combine="", contender="ggm", slower=1.25, row=None):
    """A record that follows from its cell: the dense product at 700 TFLOP/s, the operation `slower` times its floor."""
    workload, product, tokens, routing = cell
    w = TABLE[workload]
    touched = float(row["experts_touched"]) if row and row["experts_touched"] else float(min(w["experts"], tokens * w["top_k"]))
    record = {"operation": operation, "workload": workload, "product": product, "tokens": tokens, "routing": routing, "dtype": "bf16",
              "combine": combine, "variant": "plain", "contender": contender, "rows": tokens * w["top_k"], "experts_touched": touched,
              "rounds": 20, "launch": "graph", "rel_err": 1.7e-3, "rel_err_parts": {"d": 1.7e-3}, "workspace_bytes": 0, "source_id": SOURCE,
              "date": "2026-01-01", "device": "made up"}
    record["flops"], record["dense_flops"], record["bytes"] = check.work(record, TABLE)
    tera = float(row["dense_tflops"]) if row and row["dense_tflops"] else 700.0
    record["dense_ms"] = record["dense_flops"] / (tera * 1e9)
    record["floor_ms"] = max(record["flops"] / record["dense_flops"] * record["dense_ms"], record["bytes"] / 4.4e9)
    record["ms"] = slower * record["floor_ms"]
    record["fraction"] = record["floor_ms"] / record["ms"]
    return record


def full_record():
    records = []
    for operation in check.REQUIRED:
        for cell, row in check.peer_cells(operation, PEERS, TABLE).items():
            records += [made_up(operation, cell, combine, row=row) for combine in check.combines(operation)]
    return records


FULL = full_record()


def faults(records, **kwargs):
    return check.faults_of(records, PEERS, TABLE, SOURCE, **kwargs)


def one(records, operation, size):
    return next(r for r in records if r["operation"] == operation and check.size_class(TABLE[r["workload"]], r["tokens"]) == size)


class Cells(unittest.TestCase):
    def test_numbers_of_cells_are_the_rows_of_the_file(self):
        counts = {operation: len(check.peer_cells(operation, PEERS, TABLE)) for operation in check.REQUIRED}
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
        self.assertEqual(len(found), len(check.peer_cells("moe_forward", PEERS, TABLE)))

    def test_an_operation_that_is_not_there_at_all(self):
        found = faults([r for r in FULL if r["operation"] != "grouped_k"])
        self.assertEqual(len(found), len(check.peer_cells("grouped_k", PEERS, TABLE)))

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
        self.assertEqual(check.floor_ms(record), 3.0)
        record["dense_ms"] = 1e-3
        self.assertAlmostEqual(check.floor_ms(record), record["bytes"] / 4.4e9)

    def test_the_backward_has_two_products(self):
        record = made_up("moe_backward", ("olmoe", "up", 32768, "uniform"))
        record["dense_ms"] = 3.0
        self.assertAlmostEqual(check.floor_ms(record), 6.0)

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
        record["floor_ms"] = check.floor_ms(record)
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
        record["bytes"] = check.work(record, TABLE)[2]
        record["floor_ms"] = check.floor_ms(record)
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
        self.assertAlmostEqual(check.geometric_mean([0.5, 2.0, 1.0]), 1.0)
        for value, count in check.means(FULL, TABLE).values():
            self.assertAlmostEqual(value, 0.8)
            self.assertGreater(count, 0)

    def test_the_mean_is_recomputed_and_not_read(self):
        records = copy.deepcopy(FULL)
        for record in records:
            record["fraction"] = 1.0
        self.assertAlmostEqual(check.means(records, TABLE)["grouped", "", "train"][0], 0.8)

    def test_every_bar_has_cells(self):
        for key in check.BARS:
            self.assertIn(key, check.means(FULL, TABLE))

    def test_the_slowest_cell_against_its_peer(self):
        records = copy.deepcopy(FULL)
        record = one(records, "grouped", "train")
        peer = float(check.peer_cells("grouped", PEERS, TABLE)[check.cell_of(record)]["ms"])
        record["ms"] = 3 * peer
        ratio, worst = check.slowest(records, PEERS, TABLE, "grouped", "", "train")
        self.assertAlmostEqual(ratio, 3.0)
        self.assertEqual(check.cell_of(worst), check.cell_of(record))

    def test_no_peer_for_the_backward(self):
        self.assertIsNone(check.slowest(FULL, PEERS, TABLE, "moe_backward", "", "train"))

    def test_printing_takes_every_operation(self):
        bandwidth = {"operation": "bandwidth", "contender": "copy", "ms": 2.0, "bytes": 8.6e9, "source_id": SOURCE, "rounds": 20}
        cell = ("olmoe", "up", 32768, "uniform")
        more = [made_up("grouped", cell, contender="cuBLAS loop"), dict(made_up("grouped", cell), dtype="float32"), bandwidth]
        for operation in ("route", "permute", "unpermute"):
            record = dict(made_up("grouped", cell), operation=operation, ms=0.02)
            record["flops"], record["dense_flops"], record["bytes"] = check.work(record, TABLE)
            more.append(record)
        check.print_means(FULL, PEERS, TABLE)
        check.print_baselines(FULL + more, TABLE)
        check.print_paths(FULL + more, TABLE)
        self.assertTrue(all(math.isfinite(value) for value, _ in check.means(FULL + more, TABLE).values()))


if __name__ == "__main__":
    unittest.main(buffer=True)
