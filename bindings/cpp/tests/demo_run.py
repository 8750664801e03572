#!/usr/bin/env python3
"""Runs the demo as a user does and looks at its output and exit codes: demo_run.py DEMO host|cuda TEXT.

Exit: 0 passed, 1 failed, 77 no GPU (1 under GGM_REQUIRE_GPU=1).
"""
import os
import pathlib
import subprocess
import sys
import tempfile


def run(*arguments):
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True)
    print("$", *arguments, "->", done.returncode)
    print(done.stdout + done.stderr)
    return done


def expect(done, code, *texts):
    if done.returncode != code:
        sys.exit(f"expected exit code {code}, got {done.returncode}")
    for text in texts:
        if text not in done.stdout + done.stderr:
            sys.exit(f"not in the output: {text!r}")


def main():
    demo, backend, text = sys.argv[1:]
    small = ["--backend", backend, "--tokens", "200", "--hidden", "96", "--out-features", "80", "--experts", "24", "--top-k", "4"]
    first = run(demo, *small, text)
    no_gpu = any(s in first.stderr for s in ("GGM_STATUS_UNSUPPORTED_DEVICE", "GGM_STATUS_BACKEND_UNAVAILABLE"))
    if backend == "cuda" and first.returncode == 2 and no_gpu:
        if os.environ.get("GGM_REQUIRE_GPU", "") not in ("", "0"):
            sys.exit("no GPU, but GGM_REQUIRE_GPU is set")
        sys.exit(77)
    expect(first, 0, "Rows per expert: 800 rows", "never materialised", "d_routing_weights", "All checks passed.")
    expect(run(demo, *small, "--type", "bfloat16", "--seed", "7", text), 0, "bfloat16", "All checks passed.")
    expect(run(demo, *small, "--type=float32", text), 0, "float32", "All checks passed.")
    if backend == "cuda":
        return
    with tempfile.TemporaryDirectory() as folder:
        short = pathlib.Path(folder, "short.txt")
        short.write_text("Three short words.\n")
        expect(run(demo, *small, short), 0, "4 tokens, 4 different; repeated to 200", "All checks passed.")
        empty = pathlib.Path(folder, "empty.txt")
        empty.write_text(" \n")
        expect(run(demo, *small, empty), 2, "has no words")
        expect(run(demo, *small, folder), 2, "is a folder")
        expect(run(demo, *small, pathlib.Path(folder, "none.txt")), 2, "cannot open", "No such file")
    expect(run(demo, "--help"), 0, "Usage: ggm_demo", "--backend", "--tokens", "--seed")
    expect(run(demo, "--tokens", "many"), 2, "--tokens many", "whole number")
    expect(run(demo, "--backend", "tpu"), 2, "--backend tpu", "expected host, cuda")
    expect(run(demo, "--frobnicate"), 2, "unknown option --frobnicate")
    expect(run(demo, "--seed"), 2, "--seed needs a value")
    expect(run(demo, "--experts", "4", "--top-k", "5"), 2, "--top-k 5")


if __name__ == "__main__":
    main()
