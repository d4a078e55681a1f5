#!/usr/bin/env bash
# Everything that needs a GPU: checks, calibrations, validations, curves, counters; on a bare machine, too, for a few minutes at a time.
#
#   on_gpu.sh --bundle FOLDER [BUILD]   packs programs, their libraries, scenarios and this script (40 MB)
#   on_gpu.sh [--stage A|B|C|all] [--seconds N] [--from ARCHIVE] [RESULTS]
#                                       runs, in a bundle or in a tree; RESULTS: gpu-results/ by default
#   on_gpu.sh --dry [RESULTS]           the same way with tiny models on the emulated machine of the tests
#   on_gpu.sh --take ARCHIVE [TREE]     files what came back: hardware/calibrated/, reports/published/
#
# Stages: A is it right, and how far off are predictions; B partitions, sizes, busy neighbours, graphs; C counters, checkers, curves.
# The most valuable parts come first, and none begins that has no time left. Each leaves its result in RESULTS as soon as it is
# done; one that fails is named, and the others go on. gpu-STAGE.tgz, in $OUT or RESULTS, has all of RESULTS and is renewed after
# every part: what was cut off is there. Started again with the same RESULTS, or --from an archive, parts that are done are left out.
# INTERLOCK names another program, CASES the test cases that are wanted, a regular expression.
set -uo pipefail
self=$(readlink -f -- "${BASH_SOURCE[0]}")
here=$(cd -- "$(dirname -- "$self")" && pwd -P)
fail() { echo "on_gpu.sh: $*" >&2; exit 2; }

# A bundle has its programs beside this script, a tree in build/bin/ two folders above it.
if [[ -d $here/bin && -d $here/share ]]; then
  root=$here bin=$here/bin scenarios=$here/share/interlock/scenarios/validation text=$here/share/text.txt
else
  root=$(cd -- "$here/../.." && pwd -P)
  bin=$root/build/bin scenarios=$root/scenarios/validation text=
fi

# bundle FOLDER [BUILD]: what a machine without packages and without a network needs.
bundle() {
  local to=$1 build=${2:-$root/build} file library
  mkdir -p -- "$to"/{bin,lib,share/interlock} || return
  for file in interlock libinterlock_harness.so libinterlock_cuda.so libinterlock_simgrid.so cuda_test cuda_device_test cuda_block_bench; do
    [[ ! -e $build/bin/$file ]] || strip -o "$to/bin/$file" "$build/bin/$file" || return
  done
  for file in models/zoo hardware/catalogue hardware/calibrated scenarios validate/published; do
    mkdir -p -- "$to/share/interlock/$file" && cp -r -- "$root/$file/." "$to/share/interlock/$file/" || return
  done
  cat -- "$root"/*.md "$root"/docs/*.md >"$to/share/text.txt"
  git -C "$root" log -1 --format=%H >"$to/share/commit.txt"
  cp -- "$self" "$to/on_gpu.sh"
  # All libraries but those of C, of C++ and of CUDA, which the machine has.
  for file in "$to"/bin/*; do ldd "$file"; done | awk '/=> \//{print $3}' | sort -u |
    grep -Ev '/(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|libcublasLt|libcudart)\.' |
    while read -r library; do cp -L -- "$library" "$to/lib/"; done
  du -sh -- "$to"
}

# take ARCHIVE [TREE]: calibrated devices, results and pages of a run, put where they belong.
take() {
  local archive=$1 tree=${2:-$root} from name file kind
  from=$(mktemp -d) && tar -xzf "$archive" -C "$from" || fail "$archive: no archive of on_gpu.sh"
  [[ -s $from/name.txt ]] || fail "$archive: has no name.txt; expected gpu-STAGE.tgz of on_gpu.sh"
  name=$(<"$from/name.txt")
  mkdir -p -- "$tree/hardware/calibrated" "$tree/reports/published/$name" || return
  for file in "$from"/calibrate-*.json; do
    [[ -s $file ]] || continue
    kind=$(basename -- "$file" .json) && kind=${kind#calibrate-}
    kind=${kind/#whole/} && kind=${kind/#[0-9]/-1-of-${kind:0:1}}
    cp -- "$file" "$tree/hardware/calibrated/$name$kind.json"
    echo "hardware/calibrated/$name$kind.json"
  done
  find "$from" -maxdepth 1 -type f \( -name '*-prediction.json' -o -name '*-errors.json' -o -name '*.html' -o -name '*.svg' \
    -o -name 'curves.json' -o -name '*.txt' -o -name 'clocks.csv' \) ! -name text.txt -exec cp -- {} "$tree/reports/published/$name/" \;
  (cd -- "$tree/reports/published/$name" && for file in *-prediction.json; do [[ ! -e $file ]] || sha256sum -- "$file"; done >predictions.sha256)
  echo "reports/published/$name/: look at summary.txt, commit all, and renew the table of docs/validation.md"
  rm -rf -- "$from"
}

# cases PREFIX [TOOL...]: a process for each test case on a GPU, so that a crash costs one of them. Whole trainings of replicas come last.
cases() {
  local prefix=$1 count=0 bad=0 status name
  "$bin/cuda_device_test" -ltc | sed '1,2d;/^===/,$d' | grep -E "${CASES-.}" |
    awk '/replicas|every exchange/ {last = last $0 "\n"; next} {print} END {printf "%s", last}' >"$prefix-cases.txt"
  while IFS= read -r name; do
    status=0 count=$((count + 1))
    timeout -k 5 150 "${@:2}" "$bin/cuda_device_test" --success --duration=true --test-case="${name%%,*}*" \
      >"$prefix-$count.txt" 2>&1 </dev/null || status=$?
    if ((status == 0)); then
      echo "ok      $name"
    else
      bad=$((bad + 1))
      echo "FAILED $status  $name"
      grep -nE 'ERROR|=========' "$prefix-$count.txt" | head -n 12
    fi
    grep -hE 'green contexts|asked for|took|ms$' "$prefix-$count.txt" | sort -u | head -n 24
  done <"$prefix-cases.txt"
  echo "$((count - bad)) passed, $bad failed"
  ((bad == 0))
}

stage=all limit=1740 dry=no from=
while [[ ${1:-} == --* ]]; do
  case $1 in
  --bundle) [[ -n ${2-} ]] || fail "--bundle: expected a folder"; bundle "${@:2}"; exit ;;
  --take) [[ -s ${2-} ]] || fail "--take: expected an archive that this script made"; take "${@:2}"; exit ;;
  --cases) cases "${@:2}"; exit ;;
  --stage) stage=${2-}; shift 2 ;;
  --seconds) limit=${2-}; shift 2 ;;
  --from) from=$(readlink -f -- "${2-}") && [[ -s $from ]] || fail "--from: expected an archive that this script made"; shift 2 ;;
  --dry) dry=yes; shift ;;
  *) fail "$1: unknown; the head of this script says what there is" ;;
  esac
done
[[ $stage =~ ^(A|B|C|all)$ ]] || fail "--stage $stage: expected A, B, C or all"
[[ $limit =~ ^[1-9][0-9]*$ ]] || fail "--seconds $limit: expected a number of seconds"
results=$(mkdir -p -- "${1:-gpu-results}" && cd -- "${1:-gpu-results}" && pwd -P) || exit 1
cd -- "$results" || exit 1
[[ -z $from ]] || tar -xzf "$from" || exit 1
if [[ $dry == no ]] && ! command -v nvidia-smi >/dev/null; then
  echo "no NVIDIA driver here (nvidia-smi is not found): nothing was run; --dry goes as far as that goes without" | tee -a summary.txt
  exit 2
fi
archive=${OUT:-$results}/gpu-$stage.tgz failed=0

# Libraries that a machine has in folders where nobody looks.
export CUDA_DEVICE_MAX_CONNECTIONS=32 PATH=$PATH:/usr/local/cuda/bin
for library in libcublasLt.so.13 libcublasLt.so.12 libnccl.so.2; do
  found=$(find /usr/local /opt /usr/lib -name "$library" -print -quit 2>/dev/null)
  [[ -z $found ]] || LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}${found%/*}
done
[[ $root != "$here" ]] || LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH-}

keep() { tar -czf "$archive.new" --exclude='*.tgz*' -C "$results" . && mv -- "$archive.new" "$archive"; }
note() { printf '%-30s %s\n' "$1" "$2" | tee -a summary.txt; }

# part NAME SECONDS COMMAND...: its output goes to NAME.txt, what became of it to summary.txt.
part() {
  local name=$1 most=$2 begin=$SECONDS status=0 left=$((limit - SECONDS))
  [[ ! -e $name.done ]] || return 0
  if ((left < 12)); then
    note "$name" "no time left"
    return 1
  fi
  [[ $dry == no ]] || most=1800 # what takes longer hangs, however slow the machine is
  ((most < left - 5)) || most=$((left - 5))
  timeout -k 5 "$most" "${@:3}" >"$name.txt" 2>&1 || status=$?
  if ((status == 0)); then
    touch -- "$name.done"
    note "$name" "done  $((SECONDS - begin)) s  $(tail -n 1 "$name.txt" | cut -c 1-120)"
  elif ((status == 77)); then
    note "$name" "skipped  $((SECONDS - begin)) s"
  else
    failed=1
    note "$name" "failed ($status)  $((SECONDS - begin)) s: $(tail -n 1 "$name.txt" | cut -c 1-200)"
  fi
  keep
  return "$status"
}

interlock=${INTERLOCK:-$bin/interlock} steps=31 graph_steps=5 curve_steps=300 long=200 tiny=()
if [[ $dry == yes ]]; then
  limit=100000 steps=3 graph_steps=3 curve_steps=3 long=4
  tiny=(--set training.precision=fp32 --set model.attention_heads=2 --set model.sequence_length=4
    --set training.micro_batch_size=2 --set training.global_batch_size=8)
  [[ -n ${INTERLOCK-} || ! -x $root/build/emulated/interlock ]] || interlock=$root/build/emulated/interlock
  export EMULATED_MIB=600
  [[ $interlock == */emulated/interlock ]] || tiny+=(--set cluster.executor=cpu)
fi
emulated=no
[[ $interlock != */emulated/interlock ]] || emulated=yes
strategies='["global", {"kind": "interlocking", "n_wise": 3}, "pairwise", "local"]'
size() { [[ $dry == yes ]] && echo 16 || echo "$1"; }
sizes() { echo "{\"model.hidden_size\": [$(size "$1")], \"training.strategy\": $strategies}"; }

# calibrate NAME DEVICE SECONDS SCENARIO SWEEP [OPTION...]: the grid, and every kernel of the scenario.
calibrate() {
  local device=$2
  [[ $dry == no ]] || device=cpu
  part "calibrate-$1" "$3" "$interlock" calibrate --device "$device" --quick --for "$scenarios/$4.json" --set "sweep=$5" "${tiny[@]}" \
    --out "calibrate-$1.json" --samples "calibrate-$1.csv" "${@:6}"
}

# validate NAME SECONDS SCENARIO CALIBRATION SWEEP STEPS [OPTION...]: predicted by the device that was measured, then run.
validate() {
  local on=() link
  if [[ -s calibrate-$4.json ]]; then
    on=(--set "cluster.device=$results/calibrate-$4.json")
    link=$(sed -n 's|.*"copies": {"latency_s": \([^,]*\), "bytes_per_s": \([^}]*\)}.*|{"latency": "\1 s", "bandwidth": "\2 B/s"}|p' "calibrate-$4.json")
    [[ -z $link ]] || on+=(--set "cluster.link=$link")
  else
    note "$1" "no calibrate-$4: predicted by the datasheet"
  fi
  part "$1" "$2" "$interlock" validate run "$scenarios/$3.json" "${on[@]}" "${tiny[@]}" --set "sweep=$5" --data text.txt --steps "$6" \
    --prediction "$1-prediction.json" --json "$1-errors.json" --report "$1.html" "${@:7}"
}

# Tiny models leave out what would only do once more what another part has done.
large="{\"model.hidden_size\": [$(size 4096)]}"
stage_A() {
  if [[ $root != "$here" && $dry == no ]]; then
    part configure 120 cmake -S "$root" -B "$root/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DINTERLOCK_CUDA=ON
    part build 1500 ninja -C "$root/build" program harness cuda_test cuda_device_test cuda_block_bench
  fi
  [[ ! -x $bin/cuda_test ]] || part references 60 "$bin/cuda_test"
  [[ $dry == yes || ! -x $bin/cuda_device_test ]] || part checks 240 "$self" --cases check
  [[ $dry == yes || ! -x $bin/cuda_block_bench ]] || part block 60 "$bin/cuda_block_bench"
  calibrate whole cuda:0 100 gpu-large-blocks "$large"
  validate large-blocks 60 gpu-large-blocks whole "$large" "$steps"
  if [[ $dry == yes ]]; then
    # On threads of a processor a partition is measured as the whole.
    [[ ! -s calibrate-whole.json ]] || cp calibrate-whole.json calibrate-4.json
    strategies='[{"kind": "interlocking", "n_wise": 3}, "local"]'
  else
    calibrate 4 cuda:0/4 100 gpu-4-partitions "$(sizes 1024)"
  fi
  validate four-1024 90 gpu-4-partitions 4 "$(sizes 1024)" "$steps"
  [[ $dry == yes ]] || validate four-1024-again 60 gpu-4-partitions 4 "$(sizes 1024)" "$steps"
}
stage_B() {
  local two=2
  [[ $dry == no ]] || strategies='["global", "pairwise"]' two=4
  calibrate 4-beside-products cuda:0/4 120 gpu-4-partitions "$(sizes 1024)" --beside products
  validate four-1024-beside 60 gpu-4-partitions 4-beside-products "$(sizes 1024)" "$steps"
  validate four-1024-paced 60 gpu-4-partitions 4 "$(sizes 1024)" "$steps" --set 'cluster.executor.links=paced'
  # Two replicas of two stages: sums by kernels, as NCCL joins no parts of a GPU.
  validate four-1024-replicas 60 gpu-4-partitions 4 "{\"model.hidden_size\": [$(size 1024)], \"training.strategy\": [\"global\"], \"parallel.zero_stage\": [0, 1]}" "$steps" \
    --set 'parallel={"pipeline": 2, "data": 2, "overlap_gradients": false}'
  [[ $dry == yes ]] || calibrate 8 cuda:0/8 100 gpu-8-partitions "$(sizes 1024)"
  [[ $dry == yes ]] || validate eight-1024 60 gpu-8-partitions 8 "$(sizes 1024)" "$steps"
  [[ $dry == yes ]] || calibrate 2 cuda:0/2 100 gpu-2-partitions "$(sizes 1024)"
  validate two-1024 60 gpu-2-partitions "$two" "$(sizes 1024)" "$steps"
  # Threads of a processor run no graphs. A graph has every kernel of the run, so it is a short one.
  [[ $dry == yes && $emulated == no ]] || validate two-1024-graph 80 gpu-2-partitions "$two" "$(sizes 1024)" "$graph_steps" --graph
  [[ $dry == yes ]] || calibrate 4-2048 cuda:0/4 100 gpu-4-partitions "$(sizes 2048)"
  [[ $dry == yes ]] || validate four-2048 140 gpu-4-partitions 4-2048 "$(sizes 2048)" "$steps"
}
stage_C() {
  local ncu=(ncu --clock-control none --csv --metrics
    gpu__time_duration.sum,dram__bytes.sum,dram__throughput.avg.pct_of_peak_sustained_elapsed,sm__throughput.avg.pct_of_peak_sustained_elapsed,lts__t_sectors_op_write.sum)
  if command -v ncu >/dev/null && [[ $dry == no ]]; then
    part counters-block 90 "${ncu[@]}" -k 'regex:norm_rows|softmax_rows|sum_parts|sum_totals|map' -c 120 "$bin/cuda_block_bench"
    part counters-train 60 "${ncu[@]}" -k 'regex:add_by|look_up|step_down|softmax_loss' -c 24 "$interlock" train "$scenarios/gpu-large-blocks.json" \
      --set "model.hidden_size=$(size 1024)" --data text.txt --steps 1
  fi
  validate sustained 90 gpu-large-blocks whole "$large" "$long"
  part curves 90 "$interlock" train "$scenarios/gpu-4-partitions.json" "${tiny[@]}" --set "sweep=$(sizes 512)" --data text.txt \
    --steps "$curve_steps" --json curves.json --svg curves.svg
  if command -v compute-sanitizer >/dev/null && [[ $dry == no ]]; then
    CASES='^(elementwise|rows|where tensors|norms|embeddings|three|causal|cross|patches|the average|the mean|products|stages)' \
      part memcheck 150 "$self" --cases memcheck compute-sanitizer --error-exitcode 9
    CASES='^(norms|causal|cross|rows)' part racecheck 90 "$self" --cases racecheck compute-sanitizer --tool racecheck --error-exitcode 9
  fi
}

# What the machine is, and what its card does meanwhile: clocks, power, why it slows down.
{
  cat -- "$root/share/commit.txt" 2>/dev/null || git -C "$root" log -1 --format=%H
  date -u
  uname -a
  "$interlock" --version
  ldd "$bin/libinterlock_cuda.so"
  nvidia-smi
  nvidia-smi -q | head -n 120
  nvcc --version
} >"look-$stage.txt" 2>&1
if [[ -n $text ]]; then cp -- "$text" text.txt; else cat -- "$root"/*.md "$root"/docs/*.md >text.txt; fi
echo dry >name.txt
if [[ $dry == no ]]; then
  nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1 | tr '[:upper:] ' '[:lower:]-' >name.txt
  nvidia-smi --query-gpu=timestamp,clocks.sm,clocks.mem,power.draw,temperature.gpu,clocks_event_reasons.active \
    --format=csv,noheader -lms 200 >>clocks.csv 2>&1 &
  trap "kill $! 2>/dev/null; keep" EXIT
fi
for one in A B C; do [[ $stage != "$one" && $stage != all ]] || "stage_$one"; done
keep
echo "$archive: file it by on_gpu.sh --take $archive"
exit "$failed"
