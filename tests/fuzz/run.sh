#!/usr/bin/env bash
# Runs readers of outside text under libFuzzer: tests/fuzz/run.sh [SECONDS [READER...]]; by default all of them, two
# minutes each. FUZZ_JOBS readers run at a time, else two; FUZZ_RUNS ends each after that many executions, too. New texts
# that reach new code are kept in build-fuzz/grown/READER, what a reader does not survive in build-fuzz/findings/. A
# finding that was repaired goes to tests/fuzz/corpus/READER/kept-NAME, where every build tries it; minimise.sh makes the
# rest of the corpus of what grew.
set -euo pipefail
root=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." && pwd -P)
cd -- "$root"
source tests/fuzz/readers.sh
seconds=${1-120} runs=${FUZZ_RUNS:--1}
if (($# > 1)); then readers=("${@:2}"); else mapfile -t readers < <("$program"); fi

# fuzz READER: says how many texts were tried.
fuzz() {
  local reader=$1 log=build-fuzz/findings/$1.log folders
  mkdir -p "build-fuzz/grown/$reader" build-fuzz/findings
  mapfile -t folders < <(folders_of "$reader")
  words_of "$reader" >"build-fuzz/$reader.dict"
  # Nor do people have texts that take a second of work in usual builds, or 2 GiB. To weigh texts by how rare their
  # features are (-entropic) takes half of the time of readers with many features.
  if INTERLOCK_FUZZ=$reader \
    ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=0:malloc_context_size=8:quarantine_size_mb=64 nice "$program" \
    -max_total_time="$seconds" -runs="$runs" -entropic=0 -timeout=30 -rss_limit_mb=3000 -max_len="$longest_text" \
    -print_final_stats=1 -print_funcs=0 -dict="build-fuzz/$reader.dict" \
    -artifact_prefix="build-fuzz/findings/$reader-" "build-fuzz/grown/$reader" "tests/fuzz/corpus/$reader" \
    "${folders[@]}" >"$log" 2>&1; then
    printf '%-12s %10s executions, no finding\n' "$reader" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
  else
    printf '%-12s FINDING: %s; the end of %s:\n' "$reader" \
      "$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)" "$log"
    grep -E -m 3 'ERROR|SUMMARY|terminate|what\(\)|runtime error' "$log" || tail -n 5 "$log"
    return 1
  fi
}
export -f fuzz words_of folders_of
export program seconds runs longest_text
# shellcheck disable=SC2016  # the inner shell expands $1
printf '%s\n' "${readers[@]}" | xargs -d '\n' -n 1 -P "${FUZZ_JOBS:-2}" bash -c 'fuzz "$1"' fuzz
