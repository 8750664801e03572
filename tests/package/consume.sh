#!/usr/bin/env bash
# Uses libggm as another project does, with a small C program that is built and run.
#   consume.sh find_package BUILD   installs BUILD to a temporary prefix, moves that elsewhere, finds ggm there by find_package(ggm CONFIG)
#   consume.sh pkg-config BUILD     the same by pkg-config
#   consume.sh deb BUILD            packs BUILD as .deb, looks at their fields, unpacks both, uses them in both ways; then the built program
#                                   with the runtime package alone
#   consume.sh tgz BUILD            packs BUILD as .tar.gz, unpacks it, uses it in both ways
#   consume.sh add_subdirectory     embeds the source tree in a C project (the host backend alone, so that it is quick)
set -euo pipefail
mode=$1
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

version=$(sed -n 's/^#define GGM_VERSION_\(MAJOR\|MINOR\|PATCH\) //p' "$root/include/ggm/version.h" | paste -sd.)
soname=libggm.so.${version%.*}

die() { echo "$1"; exit 1; }

install_and_move() {
  cmake --install "$1" --prefix "$scratch/installed" >"$scratch/log" || { cat "$scratch/log"; exit 1; }
  # Nothing may remember where it was installed, or built.
  mv "$scratch/installed" "$scratch/moved"
  if grep -rlI -e "$scratch/installed" -e "$root" "$scratch/moved"; then
    echo "these installed files name a folder of the build"
    exit 1
  fi
}

project() {  # the CMake lines that make ggm::ggm
  printf 'cmake_minimum_required(VERSION 3.25)\nproject(consumer LANGUAGES C)\n%s\nadd_executable(consumer "%s/consumer.c")\ntarget_link_libraries(consumer PRIVATE ggm::ggm)\n' \
    "$1" "$here" >"$scratch/CMakeLists.txt"
}

build_and_run() {
  { cmake -S "$scratch" -B "$scratch/build" -G Ninja "$@" && cmake --build "$scratch/build" -j 2 --target consumer; } >"$scratch/log" 2>&1 || {
    cat "$scratch/log"
    exit 1
  }
  "$scratch/build/consumer"
}

need() { command -v "$1" >/dev/null 2>&1 || { echo "skipped: there is no $1 here"; exit 77; }; }

by_find_package() {
  project "find_package(ggm $version CONFIG REQUIRED)"
  build_and_run -DCMAKE_PREFIX_PATH="$1"
  # The library that was found is that of the prefix, not one that the machine has.
  grep -q "^ggm_DIR:PATH=$1/" "$scratch/build/CMakeCache.txt" || die "find_package took another ggm: $(grep ^ggm_DIR "$scratch/build/CMakeCache.txt")"
}

by_pkg_config() {
  export PKG_CONFIG_PATH
  PKG_CONFIG_PATH=$(dirname "$(find "$1" -name ggm.pc)")
  [ "$(pkg-config --modversion ggm)" = "$version" ] || die "ggm.pc says version $(pkg-config --modversion ggm)"
  # shellcheck disable=SC2046
  gcc -std=c11 -Wall -Werror $(pkg-config --cflags ggm) "$here/consumer.c" -o "$scratch/consumer" $(pkg-config --libs ggm)
  readelf -d "$scratch/consumer" | grep -qF "[$soname]" || die "the program does not ask for $soname"
  LD_LIBRARY_PATH=$(pkg-config --variable=libdir ggm) "$scratch/consumer"
}

pack() {  # pack GENERATOR BUILD: packages in $scratch/packed
  # cpack takes the prefix of the generator, not of the build, and builds nothing.
  cpack -G "$1" --config "$2/CPackConfig.cmake" -B "$scratch/packed" >"$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
}

one_file() {  # the one file in $scratch/packed of that name
  local found
  found=$(find "$scratch/packed" -maxdepth 1 -name "$1")
  [ -f "$found" ] || { echo "not exactly one $1 in: $(ls "$scratch/packed")" >&2; exit 1; }
  echo "$found"
}

field() {  # field FILE NAME EXPRESSION
  local value
  value=$(dpkg-deb -f "$1" "$2")
  [[ $value =~ $3 ]] || die "$(basename "$1"): $2 is '$value'"
}

case $mode in
  find_package)
    install_and_move "$2"
    by_find_package "$scratch/moved"
    ;;
  pkg-config)
    need pkg-config
    install_and_move "$2"
    by_pkg_config "$scratch/moved"
    ;;
  deb)
    need dpkg-deb
    need pkg-config
    pack DEB "$2"
    runtime=$(one_file "libggm${version%.*}_${version}_*.deb")
    development=$(one_file "libggm-dev_${version}_*.deb")
    field "$runtime" Package "^libggm${version%.*}\$"
    field "$runtime" Depends '(^|, )libc6( |,|$)'
    field "$runtime" Maintainer '^.+ <.+@.+>$'
    field "$development" Depends "(^|, )libggm${version%.*} \\(= $version\\)(,|\$)"
    [ "$(dpkg-deb -I "$runtime" shlibs)" = "libggm ${version%.*} libggm${version%.*} (>= $version)" ] || die "the shlibs file is wrong"
    [ "$(dpkg-deb -I "$runtime" triggers)" = "activate-noawait ldconfig" ] || die "installing would not tell the loader"
    dpkg-deb -x "$runtime" "$scratch/runtime"
    dpkg-deb -x "$runtime" "$scratch/both"
    dpkg-deb -x "$development" "$scratch/development"
    # Two packages may not hold one file: dpkg would refuse to install the second.
    twice=$(cd "$scratch" && { (cd runtime && find . ! -type d); (cd development && find . ! -type d); } | sort | uniq -d)
    [ -z "$twice" ] || die "in both packages: $twice"
    dpkg-deb -x "$development" "$scratch/both"
    [ -s "$scratch/runtime/usr/share/doc/libggm${version%.*}/copyright" ] || die "no licence in the runtime package"
    [ -s "$scratch/development/usr/share/doc/libggm-dev/copyright" ] || die "no licence in the development package"
    by_find_package "$scratch/both/usr"
    by_pkg_config "$scratch/both/usr"
    library=$(find "$scratch/runtime" -name "$soname")
    [ -n "$library" ] || die "no $soname in the runtime package"
    # Two minor versions can be installed beside each other when no path of theirs is the same, so each says the version.
    minor=${version%.*} shared=()
    while IFS= read -r path; do
      case $path in */libggm"$minor"/* | */libggm.so."$minor" | */libggm.so."$minor".*) ;; *) shared+=("$path") ;; esac
    done < <(cd "$scratch/runtime" && find . ! -type d)
    [ ${#shared[@]} -eq 0 ] || die "paths of the runtime package that another minor version would have too: ${shared[*]}"
    LD_LIBRARY_PATH=$(dirname "$library") "$scratch/consumer"
    ;;
  tgz)
    need pkg-config
    pack TGZ "$2"
    mkdir "$scratch/unpacked"
    tar -xzf "$(one_file "libggm-$version-*.tar.gz")" -C "$scratch/unpacked" --strip-components=1
    [ -s "$scratch/unpacked/share/doc/ggm/LICENSE" ] || die "no licence in the archive"
    by_find_package "$scratch/unpacked"
    by_pkg_config "$scratch/unpacked"
    ;;
  add_subdirectory)
    # A project in C alone: ggm brings its own languages, and neither its tests nor its install surprise it.
    launcher=()
    if command -v ccache >/dev/null 2>&1; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache); fi
    project "add_subdirectory(\"$root\" ggm EXCLUDE_FROM_ALL)"
    build_and_run -DGGM_CUDA=OFF -DCMAKE_BUILD_TYPE=Release "${launcher[@]}"
    if grep -q 'GGM_BUILD_TESTS:BOOL=ON' "$scratch/build/CMakeCache.txt"; then
      echo "the embedding project would build the tests of ggm"
      exit 1
    fi
    ;;
  *)
    echo "usage: consume.sh find_package|pkg-config|deb|tgz|add_subdirectory [BUILD]" >&2
    exit 2
    ;;
esac
