#!/usr/bin/env bash
# Makes the HTML reference of include/ggm by Doxygen: cmake/docs.sh [folder]. Default: build/reference; start at html/ggm_8h.html there.
# Exit: 0 made, 77 no doxygen here, anything else a warning or an error of Doxygen.
set -euo pipefail
folder=$(realpath -m "${1:-$(dirname "$0")/../build/reference}")
cd "$(dirname "$0")/.."
if ! command -v doxygen >/dev/null 2>&1; then
  echo "docs: skipped, there is no doxygen here (Debian 12: apt-get install doxygen)"
  exit 77
fi
version=$(sed -n 's/^#define GGM_VERSION_\(MAJOR\|MINOR\|PATCH\) //p' include/ggm/version.h | paste -sd.)
mkdir -p "$folder"
{ cat docs/Doxyfile; echo "PROJECT_NUMBER = $version"; echo "OUTPUT_DIRECTORY = \"$folder\""; } | doxygen -
for page in ggm_8h ggm_8hpp; do
  [ -s "$folder/html/$page.html" ] || { echo "docs: Doxygen made no page $page" >&2; exit 1; }
done
# A comment behind a field and one in front of a function: the filter did its work.
grep -q "elements between the ids of two tokens" "$folder/html/structggm__route__problem.html" || { echo "docs: fields have no text" >&2; exit 1; }
grep -q "The name of a status, such as" "$folder/html/ggm_8h.html" || { echo "docs: functions have no text" >&2; exit 1; }
echo "docs: $folder/html/ggm_8h.html"
