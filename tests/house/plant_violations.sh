#!/usr/bin/env bash
# Plants one violation after another in an empty tree and sees check_floors.sh, and then
# check_words.sh, refuse each.
# Usage: plant_violations.sh ROOT
set -euo pipefail
check=$1/cmake/check_floors.sh
tree=$(mktemp -d)
trap 'rm -rf -- "$tree"' EXIT
head='// A file that is planted here.\n// SPDX-License-Identifier: Apache-2.0\n'
passed=0
failed=0

# verdict NAME RESULT: counts and prints one outcome.
verdict() {
  if [[ $2 == ok ]]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $1: $2"
  fi
}

# plant FILE TEXT: FILE becomes the only file of the tree besides a sound one.
plant() {
  rm -rf -- "${tree:?}"/*
  mkdir -p "$tree/base" "$tree/$(dirname -- "$1")"
  printf '%b#pragma once\n' "$head" >"$tree/base/sound.h"
  printf '%b' "$2" >"$tree/$1"
}

# refused FILE TEXT SENTENCE: the tree with FILE is refused with a line "FILE:...: ... SENTENCE".
refused() {
  local output
  plant "$1" "$2"
  if output=$("$check" "$tree"); then
    verdict "$1" "accepted, though: $3"
  elif grep -F -- "$1:" <<<"$output" | grep -qF -- "$3"; then
    verdict "$1" ok
  else
    verdict "$1" "expected \"$3\", got: $output"
  fi
}

# accepted FILE TEXT
accepted() {
  local output
  plant "$1" "$2"
  if output=$("$check" "$tree"); then verdict "$1" ok; else verdict "$1" "refused: $output"; fi
}

include() { printf '%s#include %s\\n' "$head" "$1"; }
lines() { printf '%s' "$head"; printf '//\\n%.0s' $(seq "$1"); }
columns() { printf '%s// ' "$head"; printf 'x%.0s' $(seq "$1"); printf '\\n'; }

accepted models/a.cc "$(include '"base/sound.h"')"
accepted sim/lower/a.cc "$(include '"sim/plan/schedules/schedule.h"')"
accepted tests/sim/a.cc "$(include '"cli/main.h"')"
refused base/a.cc "$(include '"models/layers/model_graph.h"')" "base includes from models/layers"
refused models/layers/a.cc "$(include '"hardware/devices/device.h"')" "models/layers includes from hardware/devices"
refused hardware/devices/a.h "$(include '"models/networks/resnet.h"')" "hardware/devices includes from models/networks"
refused sim/plan/a.cc "$(include '"sim/program/program.h"')" "sim/plan includes from sim/program"
refused sim/engines/a.cc "$(include '"sim/measure/metrics.h"')" "sim/engines includes from sim/measure"
refused scenarios/load/a.cc "$(include '"reports/report.h"')" "scenarios/load includes from reports"
refused scenarios/a.cc "$head" "lies in no room"
refused validate/a.cc "$(include '"tests/support/a.h"')" "validate includes from tests"
refused models/a.cc "$(include '"sound.h"')" "not written from the root"

accepted sim/engines/simgrid_engine.cc "$(include '<simgrid/s4u.hpp>')"
accepted sim/engines/simgrid_network.h "$(include '<simgrid/version.h>')"
refused sim/engines/a.cc "$(include '<simgrid/s4u.hpp>')" "SimGrid may be included only in"
refused sim/lower/a.cc "$(include '<xbt/log.h>')" "SimGrid may be included only in"
accepted base/json/json.cc "$(include '<nlohmann/json.hpp>')"
refused scenarios/a.cc "$(include '<nlohmann/json.hpp>')" "nlohmann-json may be included only in"
accepted cli/parser/command_parser.cc "$(include '<CLI/CLI.hpp>')"
refused cli/a.cc "$(include '<CLI/CLI.hpp>')" "CLI11 may be included only in"
accepted validate/cuda/a.cu "$(include '<cuda_runtime.h>')"
refused validate/a.cc "$(include '<cuda_runtime.h>')" "CUDA may be included only in"
accepted validate/a.cc "$(include '<Eigen/Dense>')"
refused models/a.cc "$(include '<Eigen/Dense>')" "Eigen may be included only in"
refused models/a.cc "$(include '<doctest/doctest.h>')" "doctest may be included only in"

accepted models/a.cc "$(lines 598)"
refused models/a.cc "$(lines 599)" "601 lines; expected at most 600"
accepted tests/models/a.cc "$(lines 398)"
refused tests/models/a.cc "$(lines 399)" "401 lines; expected at most 400"
accepted models/a.h "$(lines 148)"
refused models/a.h "$(lines 149)" "151 lines; expected at most 150"
accepted models/a.cc "$(columns 97)"
refused models/a.cc "$(columns 98)" "101 columns; expected at most 100"
accepted models/a.cc "$head// $(printf '\\0303\\0251%.0s' $(seq 97))\\n"
refused models/a.cc "${head}int a; \\n" "blanks at the end of the line"
refused docs/a.md "# A\\n\\nText \\n" "blanks at the end of the line"
refused models/sound.h "$head" "a second file named sound.h"
refused models/a.h "${head}namespace interlock {\\nstruct Twin {\\n};\\nstruct Twin {\\n};\\n}  // namespace interlock\\n" "a second Twin"
accepted models/a.h "${head}namespace interlock {\\nstruct Twin;\\nstruct Twin {\\n};\\nnamespace {\\nstruct Twin {\\n};\\n}  // namespace\\n}  // namespace interlock\\n"

# A folder with one source too many; the names are a1 to a25.
for most in 24 25; do
  plant models/a1.cc "$head"
  for ((i = 2; i <= most; ++i)); do printf '%b' "$head" >"$tree/models/a$i.cc"; done
  if output=$("$check" "$tree"); then result=accepted; else result="refused: $output"; fi
  case $most/$result in
    24/accepted | "25/refused: models: holds 25 sources; expected at most 24") verdict models ok ;;
    *) verdict models "with $most sources it was $result" ;;
  esac
done

# A source that the lists of its tree leave out; another that they name.
for named in b.cc a.cc; do
  plant models/a.cc "$head"
  echo "interlock_folder(models SOURCES $named)" >"$tree/models/CMakeLists.txt"
  if output=$("$check" "$tree"); then result=accepted; else result="refused: $output"; fi
  case $named/$result in
    a.cc/accepted | "b.cc/refused: models/a.cc: no CMakeLists.txt names it"*) verdict models/a.cc ok ;;
    *) verdict models/a.cc "beside a list of $named it was $result" ;;
  esac
done
# All sources of the folder that they glob; and of no other.
for globbed in layers networks; do
  plant models/networks/a.cc "$head"
  mkdir -p "$tree/models"
  echo "file(GLOB families CONFIGURE_DEPENDS $globbed/*.cc)" >"$tree/models/CMakeLists.txt"
  if output=$("$check" "$tree"); then result=accepted; else result="refused: $output"; fi
  case $globbed/$result in
    networks/accepted | "layers/refused: models/networks/a.cc: no CMakeLists.txt names it"*) verdict models/networks/a.cc ok ;;
    *) verdict models/networks/a.cc "beside a glob of $globbed it was $result" ;;
  esac
done
refused models/string_util.h "$head" "a file is named after what it is"
refused models/a.h "#pragma once\\n" "does not say what the file is for"
refused models/a.h "// What.\\n#pragma once\\n" "no licence tag"
refused docs/a.md "see ..""/shared/design.md\\n" "names a folder outside the project"
refused docs/a.md "see /wor""k/main\\n" "names a folder outside the project"

check=$1/cmake/check_words.sh
comment() { printf '%s%s\\nint f();\\n' "$head" "$1"; }
accepted models/a.cc "$(comment '/// Returns the same, whatever it is.')"
accepted models/a.cc "$(comment '/// Returns what is left.\\n/// The same word may open a second line.')"
accepted models/a.cc "$(comment '/// Beginning at the beginning.')"
refused tests/models/a.cc "$(comment '/// What a test says.')" "a comment opens with a verb"
for opener in Of What Whether Likewise 'The same' Where; do
  refused models/a.cc "$(comment "/// $opener it is.")" "a comment opens with a verb"
  refused models/a.cc "$(comment "  // $opener, that is.")" "a comment opens with a verb"
  refused models/a.h "$(comment "int i;  ///< $opener it is.")" "a comment opens with a verb"
done
refused models/a.cc "// What it is.\\n" "a comment opens with a verb"
for opener in The A An All One Why How Bytes; do
  refused models/a.h "$(comment "/// $opener sum.")" "a comment on a function opens with a verb"
  accepted models/a.cc "$(comment "/// $opener sum.")"
done
accepted models/a.h "$head/// The sum.\\nstruct Sum {};\\n/// The names.\\nint names = f();\\n/// Sums.\\n/// The rest.\\nint f();\\n"
for words in 'the begin' 'in the mean' 'so many' somebody nobody everybody whoever 'that which' 'what there is' mended; do
  refused models/a.cc "$(comment "/// Takes $words, too.")" "\"$words\" is retired"
  refused models/a.cc "$(comment "const char* text = \"$words\";")" "\"$words\" is retired"
  refused docs/a.md "# A\\n\\nText: $words.\\n" "\"$words\" is retired"
done
refused models/a.cc "$(comment '/// Sends it. Nobody asks.')" '"nobody" is retired'
refused docs/a.md "# A\\n\\nLooks: 3\\n" '"Looks" is retired'
accepted docs/a.md "# A\\n\\nIt looks good.\\n"
for code in 'int lane = 0;' 'std::vector<int> lanes_;' 'int lane_free(int wire);' 'struct Lane {};' 'constexpr int kLane = 1;'; do
  refused sim/lower/a.cc "$(comment "$code")" "a lane is a row of a picture"
  accepted reports/page/a.cc "$(comment "$code")"
done
accepted sim/lower/a.cc "$(comment 'int plane = 0, planes_of = 1;')"
for code in 'struct Figure {};' 'struct ErrorFigures;' 'int run_figures(int result);'; do
  refused reports/headlines/a.cc "$(comment "$code")" "a figure is a picture"
done
accepted reports/page/a.cc "$(include '"reports/charts/paper_figures.h"')"
refused sim/engines/a.cc "$(comment 'class Machine;')" "a machine is hardware"
refused sim/engines/a.cc "$(comment 'struct Engine {};')" "an engine runs a program"
accepted sim/engines/a.cc "$(comment 'struct EngineState {};')"
refused sim/lower/a.cc "$(comment 'void begin_copy();')" "a copy is one of several models"
refused sim/plan/a.h "$(comment 'struct BatchPart {};')" "a part is of a layer"
accepted sim/lower/a.cc "$(comment 'void begin_host_copy(int copy, int part);')"

echo "$passed passed, $failed failed"
((failed == 0))
