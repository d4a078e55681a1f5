#!/usr/bin/env bash
# Everything that needs a GPU, in one go and under ten minutes: checks, calibration, validation.
# Usage: validate/cuda/on_gpu.sh [FOLDER]. Each part writes its result there (gpu-results/ by default) as soon
# as it is done, so that a run that is cut short has what came before.
set -uo pipefail
root=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.." && pwd -P)
results=$(mkdir -p -- "${1:-gpu-results}" && cd -- "${1:-gpu-results}" && pwd -P)
cd -- "$root" || exit 1
export CUDA_DEVICE_MAX_CONNECTIONS=32
failed=0

# part NAME SECONDS COMMAND...: its output goes to NAME.txt, what became of it to summary.txt.
part() {
  local begin=$SECONDS status=0
  timeout "$2" "${@:3}" >"$results/$1.txt" 2>&1 || status=$?
  ((status == 0)) || failed=1
  printf '%-14s %s  %d s\n' "$1" "$( ((status == 0)) && echo done || echo "failed ($status)")" $((SECONDS - begin)) |
    tee -a "$results/summary.txt"
}

# has COMMAND...: whether interlock knows that command.
has() { build/bin/interlock "$@" --help >/dev/null 2>&1; }

: >"$results/summary.txt"
if ! command -v nvidia-smi >/dev/null; then
  echo "no NVIDIA driver here (nvidia-smi is not found): nothing was run" | tee "$results/summary.txt"
  exit 2
fi
{ git log -1 --format=%H; date -u; uname -a; nvcc --version; } >"$results/what.txt" 2>&1
part device 20 nvidia-smi -q
part configure 60 cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DINTERLOCK_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES=native
part build 300 ninja -C build program cuda_test cuda_device_test
part references 60 build/bin/cuda_test
part checks 150 build/bin/cuda_device_test --success
if has calibrate; then
  part calibrate 150 build/bin/interlock calibrate --device cuda --quick --out "$results/calibrated.json" --samples "$results/samples.csv"
fi
if has validate run; then
  for scenario in scenarios/validation/*.json; do
    [[ -f $scenario ]] || continue
    part "validate-$(basename -- "$scenario" .json)" 60 build/bin/interlock validate run "$scenario"
  done
fi
exit "$failed"
