#!/usr/bin/env bash
# Makes the committed corpus anew: tests/fuzz/minimise.sh [READER...]; by default of all readers. Of what run.sh grew, the
# real files of the tree and the corpus as it is, few and small texts stay that together reach all code that any of them reaches. Texts
# whose names begin with "kept-" stay whatever they reach: findings that were repaired.
set -euo pipefail
root=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." && pwd -P)
cd -- "$root"
source tests/fuzz/readers.sh
if (($# > 0)); then readers=("$@"); else mapfile -t readers < <("$program"); fi

for reader in "${readers[@]}"; do
  corpus=tests/fuzz/corpus/$reader small=build-fuzz/small/$reader
  rm -rf -- "$small" && mkdir -p "$small" "build-fuzz/grown/$reader"
  mapfile -t folders < <(folders_of "$reader")
  INTERLOCK_FUZZ=$reader "$program" -set_cover_merge=1 -use_counters=0 -max_len="$longest_text" \
    -rss_limit_mb=3000 \
    "$small" "$corpus" "build-fuzz/grown/$reader" "${folders[@]}" >"build-fuzz/small/$reader.log" 2>&1
  find "$corpus" -type f ! -name 'kept-*' -delete
  for text in "$small"/*; do cp -- "$text" "$corpus/$(basename -- "$text" | cut -c 1-16)"; done
  printf '%-12s %6d texts, %8d bytes\n' "$reader" "$(find "$corpus" -type f | wc -l)" \
    "$(find "$corpus" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum + 0 }')"
done
