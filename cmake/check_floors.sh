#!/usr/bin/env bash
# Refuses what breaks the house: an include from a room above or beside, a library outside its
# fence, a file out of shape, a folder too full, a source that nothing builds.
# Usage: check_floors.sh [FOLDER]; HACKING.md says what is in which room.
set -euo pipefail
export LC_ALL=C
cd -- "${1:-$(dirname -- "${BASH_SOURCE[0]}")/..}"

# Every text file of the tree, build folders and golden files (which hold what was printed) left out.
files() {
  find . \( -name .git -o -name 'build*' -o -name golden \) -prune -o -type f \
    \( -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' -o -name '*.md' -o -name '*.json' \
    -o -name 'CMakeLists.txt' -o -name '*.cmake' -o -name '*.sh' -o -name '*.js' -o -name '*.css' \
    -o -path ./run -o -path ./test -o -path ./.ci/run -o -path './.clang-*' \) -print | sort
}

check() {
  awk '
  function bad(what) { printf "%s:%d: %s\n", file, FNR, what; failed = 1 }
  # The room of a path: the longest folder that is one.
  function room_of(path) {
    while (sub(/\/[^\/]*$/, "", path)) if (path in height) return path
    return ""
  }
  function add_rooms(names,   i, count, name) {
    ++rising
    count = split(names, name, " ")
    for (i = 1; i <= count; ++i) height[name[i]] = rising
  }
  BEGIN {
    # The rooms from the ground up; those of one line stand beside each other.
    add_rooms("base")
    add_rooms("base/json")
    add_rooms("base/contract")
    add_rooms("hardware/topologies hardware/kernels models/layers")
    add_rooms("models/streams")
    add_rooms("hardware/devices models/transformer")
    add_rooms("hardware/networks models/networks")
    add_rooms("hardware/collectives models")
    add_rooms("sim/plan/schedules")
    add_rooms("sim/plan/schedules/one_copy sim/plan/schedules/sliced")
    add_rooms("sim/plan sim/plan/orders")
    add_rooms("sim/program")
    add_rooms("sim/sharing sim/processes")
    add_rooms("sim/engines sim/causes")
    add_rooms("sim/lower sim/measure")
    add_rooms("sim/workloads sim/runs sim/jobs")
    add_rooms("sim/swarm")
    add_rooms("scenarios/contract")
    add_rooms("scenarios/load")
    add_rooms("scenarios/plan")
    add_rooms("scenarios/long_run scenarios/ranges")
    add_rooms("scenarios/simulate")
    add_rooms("scenarios/sweep")
    add_rooms("scenarios/search scenarios/explain scenarios/jobs")
    add_rooms("scenarios/starter")
    add_rooms("reports")
    add_rooms("reports/words")
    add_rooms("reports/headlines reports/imports")
    add_rooms("reports/megatron")
    add_rooms("reports/exports")
    add_rooms("reports/result reports/terminal")
    add_rooms("reports/answers reports/charts reports/kineto reports/sweeps reports/traces")
    add_rooms("reports/page")
    add_rooms("include/interlock")
    add_rooms("library")
    add_rooms("validate validate/exact validate/network")
    add_rooms("validate/executors validate/stage validate/cpu/layers")
    add_rooms("validate/calibration")
    add_rooms("validate/cpu validate/cuda/kernels")
    add_rooms("validate/cuda/device")
    add_rooms("validate/cuda/stage")
    add_rooms("validate/cuda/bench")
    add_rooms("validate/cuda validate/published validate/training")
    add_rooms("validate/crosscheck")
    add_rooms("cli/parser")
    add_rooms("cli/console")
    add_rooms("cli/studio")
    add_rooms("cli examples python")
    add_rooms("tests")
  }
  function check_room(included,   to) {
    if (included ~ /\.pb\.h$/) return
    to = room_of(included)
    if (to == "") { bad("\"" included "\" is not written from the root of the tree"); return }
    if (here == "" || to == here || height[to] < height[here]) return
    bad(here " includes from " to ", which is not below it: \"" included "\"")
  }
  function fence(pattern, allowed, library) {
    if (target ~ pattern && file !~ allowed) bad(library " may be included only in " fence_name[library])
  }
  function check_include() {
    target = $0
    sub(/^[ \t]*#[ \t]*include[ \t]*[<"]/, "", target)
    sub(/[>"].*/, "", target)
    fence("^(simgrid|xbt|smpi)/", "^sim/engines/simgrid_(engine|network|probe)\\.(cc|h)$", "SimGrid")
    fence("^nlohmann/", "^(base/json/json\\.cc$|library/|reports/|validate/(crosscheck|published)/|tests/)", "nlohmann-json")
    fence("^httplib\\.h$", "^(cli/studio/studio_server|tests/.*)\\.cc$", "cpp-httplib")
    fence("^CLI/", "^cli/parser/command_parser\\.cc$", "CLI11")
    fence("^(cuda|cublas|cudnn|cupti|nccl|nvtx)", "^(validate|tests)/cuda/", "CUDA")
    fence("^(Eigen|unsupported/Eigen)/", "^(validate|tests)/", "Eigen")
    fence("^zlib\\.h$", "^(reports/result/gzip|tests/.*)\\.cc$", "zlib")
    fence("^mpi\\.h$", "^scenarios/sweep/mpi_pool\\.cc$", "MPI")
    fence("^sqlite3\\.h$", "^(reports/sweeps/database|tests/.*)\\.cc$", "SQLite")
    fence("^(yaml-cpp|toml\\+\\+)/", "^reports/imports/setting_files\\.cc$", "yaml-cpp and toml++")
    fence("^google/protobuf/|\\.pb\\.h$", "^(sim/workloads/chakra_|tests/)", "protobuf")
    fence("^pybind11/", "^python/", "pybind11")
    fence("^doctest/", "^tests/", "doctest")
    if ($0 ~ /include[ \t]*"/) check_room(target)
  }
  function check_name(   base, folder, stem) {
    folder = file; sub(/[^\/]*$/, "", folder)
    base = substr(file, length(folder) + 1); stem = base; sub(/\..*/, "", stem)
    if (stem ~ /(^|_)(util|utils|common|helper|helpers|misc|manager)(_|$)/)
      bad("a file is named after what it is, not " base)
    if (stem in home && home[stem] != folder) bad("a second file named " base "; see " home[stem])
    home[stem] = folder
    if (base ~ /\.(cc|cu)$/) source[base] = file
  }
  # Two types of one name in one program are one to the linker, which may take the functions of either for both.
  function check_type(   words, name) {
    if ($0 ~ /^namespace \{/) { hidden = 1; return }
    if ($0 ~ /^\}  \/\/ namespace$/) { hidden = 0; return }
    if ($0 ~ /^namespace /) { space = $2; return }
    if (hidden || $0 ~ /;$/ && $0 !~ /\{/) return
    split($0, words, / +/)
    name = words[1] == "enum" || words[2] == "INTERLOCK_API" ? words[3] : words[2]
    sub(/:?\{.*|:$/, "", name)
    if ((space, name) in type_home) bad("a second " name "; see " type_home[space, name])
    type_home[space, name] = file
  }
  function list_sources(   i, names, count, folder) {
    if (match($0, /[a-z_\/]+\/\*\.cc/)) {  # all sources of a folder
      folder = file
      sub(/[^\/]*$/, "", folder)
      globbed[folder substr($0, RSTART, RLENGTH - 5)] = 1
    }
    count = split($0, names, /[^a-z0-9_.]+/)
    for (i = 1; i <= count; ++i) listed[names[i]] = lists = 1
  }
  function finish_lists(   base, folder) {
    if (lists) for (base in source) if (!(base in listed)) {
      folder = source[base]
      sub(/\/[^\/]*$/, "", folder)
      if (folder in globbed) continue
      printf "%s: no CMakeLists.txt names it, so nothing builds it\n", source[base]; failed = 1
    }
  }
  function last_part(path) { sub(/.*\//, "", path); return path }
  function finish_rooms(   room) {
    for (room in held) if (held[room] > 24) {
      printf "%s: holds %d sources; expected at most 24\n", room, held[room]; failed = 1
    }
  }
  function finish() {
    if ((code || script) && lines > limit) bad(lines " lines; expected at most " limit)
  }
  BEGIN {
    fence_name["SimGrid"] = "sim/engines/simgrid_*"
    fence_name["nlohmann-json"] = "base/json/json.cc, library/, reports/, validate/crosscheck/ and validate/published/"
    fence_name["cpp-httplib"] = "cli/studio/studio_server.cc and tests"
    fence_name["CLI11"] = "cli/parser/command_parser.cc"; fence_name["CUDA"] = "validate/cuda/"
    fence_name["Eigen"] = "validate/"; fence_name["doctest"] = "tests/"; fence_name["pybind11"] = "python/"
    fence_name["zlib"] = "reports/result/gzip.cc and tests"
    fence_name["MPI"] = "scenarios/sweep/mpi_pool.cc"
    fence_name["SQLite"] = "reports/sweeps/database.cc and tests"
    fence_name["yaml-cpp and toml++"] = "reports/imports/setting_files.cc"
    fence_name["protobuf"] = "sim/workloads/chakra_*"
  }
  FNR == 1 {
    finish()
    file = FILENAME; sub(/^\.\//, "", file)
    code = file ~ /\.(h|cc|cu|cuh)$/
    script = file ~ /\.js$/
    here = room_of(file)
    if (code) ++held[substr(file, 1, length(file) - length(last_part(file)) - 1)]
    public = here == "include/interlock"  # a header that stands alone, and one for C
    limit = public ? 400 : file ~ /\.(h|cuh)$/ ? 150 : file ~ /^tests\// ? 400 : 600
    if (code && here == "") bad("lies in no room; HACKING.md lists them")
    if (code) check_name()
    hidden = 0
    if ((code || script) && $0 !~ /^\/[\/*] ./) bad("the first line does not say what the file is for")
  }
  { lines = FNR }
  file ~ /(^|\/)CMakeLists\.txt$/ { list_sources() }
  (code || script) && FNR == 2 && !/^\/[\/*] SPDX-License-Identifier: Apache-2\.0( \*\/)?$/ { bad("no licence tag") }
  code && /^[ \t]*#[ \t]*include/ { check_include() }
  code && file !~ /^tests\// && /^(\}  \/\/ namespace$|namespace |(struct|class|enum class) [A-Z])/ { check_type() }
  code || script {
    columns = $0; gsub(/[\200-\277]/, "", columns)
    if (length(columns) > 100) bad(length(columns) " columns; expected at most 100")
  }
  # What tests read may be ill-formed on purpose.
  (code || file !~ /^tests\//) && /[ \t\r]$/ { bad("blanks at the end of the line") }
  # The character classes keep this line from finding itself.
  /\.\.\/share[d]|(^|[^a-z_.])\/wor[k]\// { bad("names a folder outside the project") }
  END { finish(); finish_lists(); finish_rooms(); exit failed }
  ' "$@"
}

mapfile -t list < <(files)
if ((${#list[@]} == 0)); then
  echo "no files to check in $PWD" >&2
  exit 1
fi
check "${list[@]}"
echo "floors and fences hold in ${#list[@]} files"
