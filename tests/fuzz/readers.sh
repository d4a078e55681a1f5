# Sourced by run.sh and minimise.sh, in the root of the tree: the program, and what it takes from there.
# shellcheck shell=bash
# shellcheck disable=SC2034  # those who source this use it

program=build-fuzz/bin/interlock_fuzz
longest_text=65536 # none that people have is longer

# words_of READER: the words that its sources quote, which no list has to repeat, as a dictionary.
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
    chakra) sources=sim/workloads ;;
    *) sources="scenarios/contract scenarios/load" ;;
  esac
  # shellcheck disable=SC2086  # one word a folder
  grep -rhoE --include='*.cc' --include='*.h' '"[]A-Za-z0-9_.,:;()[-]{2,40}"' $sources | sort -u
  printf '"%s"\n' '{' '}' '[' ']' ':' ',' '\"' '\x0a' '\x00' ' ' '1e308' '1e-308' '-1' '2147483648' '18446744073709551616' \
    'null' 'true' '$((' '${' '#' "'" '\\'
}

# folders_of READER: real files of the tree beside the committed ones, a folder a line.
folders_of() {
  local folder
  case $1 in
    scenario) set -- scenarios/{examples,papers,plans,frameworks} ;;
    model) set -- tests/models/configs models/zoo ;;
    machine) set -- hardware/catalogue ;;
    *) set -- ;;
  esac
  for folder in "$@"; do [[ ! -d $folder ]] || printf '%s\n' "$folder"; done
}
