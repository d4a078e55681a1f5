#!/usr/bin/env bash
# Everything that needs a GPU, in one go, in about ten minutes as we expect: checks, calibration, validation, training curves.
# Usage: validate/cuda/on_gpu.sh [--dry] [FOLDER]
# Each part writes its result into FOLDER (gpu-results/ by default) as soon as it is done; one that fails is named, and
# the others go on. Started again with the same FOLDER, it leaves out the parts that are done. At the end calibrated
# devices and results lie under hardware/calibrated/ and reports/published/, to be looked at and committed.
# --dry does the same with tiny models on the emulated machine of the tests, or where that was not built on this
# machine's processors, and puts nothing into the tree. INTERLOCK names another program.
set -uo pipefail
root=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." && pwd -P)
dry=no
if [[ ${1:-} == --dry ]]; then
  dry=yes
  shift
fi
results=$(mkdir -p -- "${1:-gpu-results}" && cd -- "${1:-gpu-results}" && pwd -P) || exit 1
cd -- "$root" || exit 1
export CUDA_DEVICE_MAX_CONNECTIONS=32
interlock=${INTERLOCK:-build/bin/interlock}
failed=0

note() { printf '%-26s %s\n' "$1" "$2" | tee -a "$results/summary.txt"; }

# part NAME COMMAND...: its output goes to NAME.txt, what became of it to summary.txt.
part() {
  local begin=$SECONDS status=0
  [[ ! -e $results/$1.done ]] || return 0
  # What takes so long hangs, however slow the machine is.
  timeout 1800 "${@:2}" >"$results/$1.txt" 2>&1 || status=$?
  if ((status == 0)); then
    touch -- "$results/$1.done"
    note "$1" "done  $((SECONDS - begin)) s"
  elif ((status == 77)); then
    note "$1" "skipped  $((SECONDS - begin)) s"
  else
    failed=1
    note "$1" "failed ($status)  $((SECONDS - begin)) s: $(tail -n 1 "$results/$1.txt" | cut -c 1-200)"
  fi
  return "$status"
}

# The link that a calibrated device measured between workers, as a scenario's.
link_of() {
  sed -n 's|.*"copies": {"latency_s": \([^,]*\), "bytes_per_s": \([^}]*\)}.*|{"latency": "\1 s", "bandwidth": "\2 B/s"}|p' "$1"
}

# calibrate NAME DEVICE
calibrate() {
  part "$1" "$interlock" calibrate --device "$2" --quick --out "$results/$1.json" --samples "$results/$1.csv"
}

strategies='["global", {"kind": "interlocking", "n_wise": 3}, "pairwise", "local"]'
steps=31 curve_steps=300
tiny=()
if [[ $dry == yes ]]; then
  steps=3 curve_steps=3
  tiny=(--set training.precision=fp32 --set model.attention_heads=2
    --set model.sequence_length=4 --set training.micro_batch_size=2 --set training.global_batch_size=8)
  if [[ -z ${INTERLOCK-} && -x build/emulated/interlock ]]; then interlock=build/emulated/interlock; fi
  export EMULATED_MIB=600
  [[ $interlock == */emulated/interlock ]] || tiny+=(--set cluster.executor=cpu)
fi

# scenario FILE CALIBRATION: the arguments that put it on the device that was measured, in `asked`.
asked=()
scenario() {
  local link
  asked=("$1" "${tiny[@]}" --data "$results/text.txt")
  if [[ ! -s $results/$2.json ]]; then
    note "$(basename -- "$1" .json)" "no $2: predicted by the datasheet"
    return
  fi
  asked+=(--set "cluster.device=$results/$2.json")
  link=$(link_of "$results/$2.json")
  [[ -z $link ]] || asked+=(--set "cluster.link=$link")
}

# validate NAME CALIBRATION SWEEP [--graph]
validate() {
  local name=$1${4+-graph}
  scenario "scenarios/validation/$1.json" "$2"
  [[ $dry == no ]] || asked+=(--set "sweep=$3")
  part "validate-$name" "$interlock" validate run "${asked[@]}" --steps "$steps" "${@:4}" \
    --prediction "$results/$name-prediction.json" --json "$results/$name-errors.json" --report "$results/$name.html"
}

# publish FOLDER FOLDER: calibrated devices, and what was found out with them.
publish() {
  local name=$3 kind
  mkdir -p -- "$1" "$2/$name" || return
  for kind in whole 2 4 8; do
    [[ -s $results/calibrate-$kind.json ]] || continue
    cp -- "$results/calibrate-$kind.json" "$1/$name$([[ $kind == whole ]] || echo "-1-of-$kind").json"
  done
  cp -- "$results"/{what,summary}.txt "$2/$name/"
  find "$results" -maxdepth 1 \( -name '*-prediction.json' -o -name '*-errors.json' -o -name 'curves.*' \
    -o -name 'validate-*.txt' -o -name 'calibrate-*.txt' -o -name 'checks.txt' -o -name 'block.txt' \) -exec cp -- {} "$2/$name/" \;
  (cd -- "$2/$name" && sha256sum -- *-prediction.json >predictions.sha256)
}

if [[ $dry == no ]] && ! command -v nvidia-smi >/dev/null; then
  echo "no NVIDIA driver here (nvidia-smi is not found): nothing was run; --dry goes as far as that goes without" |
    tee -a "$results/summary.txt"
  exit 2
fi
{ git log -1 --format=%H; date -u; uname -a; nvcc --version; } >"$results/what.txt" 2>&1
cat -- *.md docs/*.md >"$results/text.txt"
name=dry
if [[ $dry == no ]]; then
  part device nvidia-smi -q
  name=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1 | tr '[:upper:] ' '[:lower:]-')
  part configure cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DINTERLOCK_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES=native
  part build ninja -C build harness cuda_test cuda_device_test cuda_block_bench
fi
[[ ! -x build/bin/cuda_test ]] || part references build/bin/cuda_test
[[ ! -x build/bin/cuda_device_test ]] || part checks build/bin/cuda_device_test --success
[[ $dry == yes || ! -x build/bin/cuda_block_bench ]] || part block build/bin/cuda_block_bench
for kind in whole 2 4 8; do
  device=cuda:0
  [[ $kind == whole ]] || device=cuda:0/$kind
  [[ $dry == no ]] || device=cpu
  [[ $dry == no || $kind == whole ]] && calibrate "calibrate-$kind" "$device"
  # Dry, a processor is measured in their place.
  [[ $dry == no || $kind == whole ]] || cp -- "$results/calibrate-whole.json" "$results/calibrate-$kind.json"
done
both="{\"model.hidden_size\": [16], \"training.strategy\": $strategies}"
validate gpu-large-blocks calibrate-whole '{"model.hidden_size": [16, 32]}'
for kind in 2 4 8; do validate "gpu-$kind-partitions" "calibrate-$kind" "$both"; done
# Threads of a processor run no graphs.
[[ $dry == yes && $interlock != */emulated/interlock ]] || validate gpu-2-partitions calibrate-2 "$both" --graph
scenario scenarios/validation/gpu-4-partitions.json calibrate-4
part curves "$interlock" train "${asked[@]}" \
  --set "sweep={\"model.hidden_size\": [$([[ $dry == yes ]] && echo 16 || echo 512)], \"training.strategy\": $strategies}" \
  --steps "$curve_steps" --json "$results/curves.json" --svg "$results/curves.svg"
if [[ $dry == yes ]]; then
  publish "$results/published/calibrated" "$results/published/results" "$name"
else
  publish hardware/calibrated reports/published "$name" && note published "hardware/calibrated/$name*.json, reports/published/$name/"
fi
exit "$failed"
