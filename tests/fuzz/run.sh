#!/usr/bin/env bash
# Runs readers of outside text under libFuzzer, two at a time: tests/fuzz/run.sh [SECONDS [READER...]]; by default all
# of them, two minutes each. New texts that reach new code are kept in build-fuzz/grown/READER, what a reader does not
# survive in build-fuzz/findings/. A finding that was repaired goes to tests/fuzz/corpus/READER, where every build tries it.
set -euo pipefail
root=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." && pwd -P)
cd -- "$root"
program=build-fuzz/bin/interlock_fuzz
seconds=${1-120}
if (($# > 1)); then readers=("${@:2}"); else mapfile -t readers < <("$program"); fi

# The words of a reader are those that its sources quote, which no list has to repeat.
words_of() {
  local sources
  case $1 in
    megatron) sources=reports/megatron ;;
    nemo | primus) sources="reports/megatron/bridge_settings.cc reports/megatron/megatron_scenario.cc" ;;
    torchtitan) sources=reports/imports/titan_scenario.cc ;;
    deepspeed | accelerate) sources=reports/imports/deepspeed_scenario.cc ;;
    pipedream | chimera) sources="reports/imports/pipedream_graph.cc reports/imports/chimera_blocks.cc" ;;
    kineto*) sources=reports/kineto ;;
    model) sources=models ;;
    machine | calibration) sources=hardware ;;
    result | database) sources="reports/result reports/sweeps" ;;
    errors) sources=scenarios/ranges ;;
    order | outages) sources="sim/plan/orders/schedule_text.cc sim/runs" ;;
    *) sources="scenarios/contract scenarios/load" ;;
  esac
  # shellcheck disable=SC2086  # one word a folder
  grep -rhoE --include='*.cc' --include='*.h' '"[]A-Za-z0-9_.,:;()[-]{2,40}"' $sources | sort -u
  printf '"%s"\n' '{' '}' '[' ']' ':' ',' '\"' '\x0a' '\x00' ' ' '1e308' '1e-308' '-1' '2147483648' '18446744073709551616' \
    'null' 'true' '$((' '${' '#' "'" '\\'
}

# Real files of the tree beside the committed ones.
texts_of() {
  case $1 in
    scenario) echo scenarios/{examples,papers,plans,frameworks} ;;
    model) echo tests/models/configs models/zoo ;;
    machine) echo hardware/catalogue ;;
  esac
}

# fuzz READER: says how many texts were tried.
fuzz() {
  local reader=$1 log=build-fuzz/findings/$1.log folders=() folder
  mkdir -p "build-fuzz/grown/$reader" build-fuzz/findings
  for folder in $(texts_of "$reader"); do [[ ! -d $folder ]] || folders+=("$folder"); done
  words_of "$reader" >"build-fuzz/$reader.dict"
  # A text beyond 64 kB, a second of work in usual builds or 2 GiB are none that people have.
  if INTERLOCK_FUZZ=$reader ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=0 nice "$program" \
    -max_total_time="$seconds" -timeout=30 -rss_limit_mb=3000 -max_len=65536 -print_final_stats=1 -verbosity=1 \
    -dict="build-fuzz/$reader.dict" -artifact_prefix="build-fuzz/findings/$reader-" \
    "build-fuzz/grown/$reader" "tests/fuzz/corpus/$reader" "${folders[@]}" >"$log" 2>&1; then
    printf '%-12s %10s executions, no finding\n' "$reader" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
  else
    printf '%-12s FINDING: %s; the end of %s:\n' "$reader" \
      "$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)" "$log"
    grep -E -m 3 'ERROR|SUMMARY|terminate|what\(\)|runtime error' "$log" || tail -n 5 "$log"
    return 1
  fi
}
export -f fuzz words_of texts_of
export program seconds
# shellcheck disable=SC2016  # the inner shell expands $1
printf '%s\n' "${readers[@]}" | xargs -d '\n' -n 1 -P 2 bash -c 'fuzz "$1"' fuzz
