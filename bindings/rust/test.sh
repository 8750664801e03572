#!/usr/bin/env bash
# One check of the Rust crates, for CTest: bindings/rust/test.sh CHECK LIBRARY_FOLDER TARGET_FOLDER
#   tests    everything, linked against the library
#   load     the same tests on a library that is opened at run time, and nothing to link
#   format   rustfmt
#   lint     clippy, warnings are errors
# Exit: 77 when the tool is missing here. Other versions of rustfmt and clippy have other opinions, so they are not asked.
set -euo pipefail
check=$1
export LD_LIBRARY_PATH=$2${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} CARGO_TARGET_DIR=$3 CARGO_NET_OFFLINE=true
cd "$(dirname "$0")"

skip() { echo "rust: skipped, $*"; exit 77; }
# Versions of the tools that the sources are formatted and checked by.
RUSTFMT='rustfmt 1.9.' CLIPPY='clippy 0.1.95'
has_version() { case $("${@:2}" --version 2>/dev/null) in "$1"*) ;; *) skip "there is no $1 here" ;; esac; }

command -v cargo >/dev/null 2>&1 || skip "there is no cargo here (Debian 12: apt-get install cargo)"
case $check in
  tests)
    export GGM_LIB_DIR=$2
    cargo test --offline --workspace
    cargo run --offline --quiet --example two_tokens
    ;;
  load)
    # No folder to link from, so that a forgotten reference to the library would fail.
    unset GGM_LIB_DIR
    export PKG_CONFIG=false
    cargo test --offline -p ggm-sys --features load --tests
    cargo test --offline -p ggm --features load --tests
    ;;
  format)
    has_version "$RUSTFMT" cargo fmt
    cargo fmt --all --check
    ;;
  lint)
    has_version "$CLIPPY" cargo clippy
    export GGM_LIB_DIR=$2
    cargo clippy --offline --workspace --all-targets -- -D warnings
    cargo clippy --offline --workspace --all-targets --features ggm/load -- -D warnings
    RUSTDOCFLAGS='-D warnings' cargo doc --offline --no-deps --workspace
    ;;
  *) echo "test.sh: unknown check: $check" >&2; exit 2 ;;
esac
