#!/usr/bin/env bash
# Checks every C, C++ and CUDA file against .clang-format; with --fix it rewrites them. The format is that of clang-format 14
# (Debian 12): other versions break lines elsewhere, so they are not used. Exit: 0 formatted, 1 not, 77 no clang-format 14 here.
set -euo pipefail
cd "$(dirname "$0")/.."

tool=
for candidate in ${CLANG_FORMAT:-} clang-format-14 clang-format; do
  if command -v "$candidate" >/dev/null 2>&1 && "$candidate" --version | grep -q 'version 14\.'; then tool=$candidate; break; fi
done
if [ -z "$tool" ]; then
  echo "check_format: skipped, there is no clang-format 14 here (Debian 12: apt-get install clang-format-14)"
  exit 77
fi

mapfile -t files < <({ git ls-files -co --exclude-standard -- include src tests bench bindings 2>/dev/null ||
                       find include src tests bench bindings -type f; } |
                     grep -E '\.(c|h|cpp|hpp|cu|cuh)$' | while read -r f; do if [ -f "$f" ]; then echo "$f"; fi; done)
if [ "${1:-}" = --fix ]; then
  "$tool" -i "${files[@]}"
  echo "check_format: ${#files[@]} files formatted"
  exit 0
fi
# Each fault is "file:line:column: error: ..."; the name of the file is enough.
unformatted=$(printf '%s\0' "${files[@]}" | xargs -0 -P "$(nproc)" -n 20 "$tool" --dry-run -Werror 2>&1 |
              sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: error: .*/\1/p' | sort -u) || true
bad=0
if [ -n "$unformatted" ]; then
  bad=$(wc -l <<<"$unformatted")
  sed 's/$/: not formatted/' <<<"$unformatted"
fi
echo "check_format: ${#files[@]} files, $bad not formatted"
if [ "$bad" -gt 0 ]; then
  echo "run cmake/check_format.sh --fix"
  exit 1
fi
