#!/bin/sh
# Trains a step of the byte language model under every strategy and checks its dump with PyTorch.
# SPDX-License-Identifier: Apache-2.0
# Usage: check_dumps.sh PROGRAM PYTHON SOURCES. Exit code 77: there is no PyTorch.
set -eu
program=$1
python=$2
sources=$3

"$python" -c 'import numpy, torch' 2>/dev/null || {
  echo "skipped: PyTorch on our dumps; install python3-torch to run it"
  exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# check NAME STRATEGY OPTIMIZER RATE FURTHER...: two micro-batches, four uneven stages
check() {
  echo "$1"
  strategy=$2 optimizer=$3 rate=$4
  shift 4
  "$program" train "$sources/scenarios/examples/byte-language-model.json" --quiet \
    --data "$sources/README.md" --steps 1 --rate "$rate" --decay 0.1 --dump "$folder/dump.npz" \
    --set sweep=null --set 'partition=[2, 1, 1, 2]' --set training.optimizer="$optimizer" \
    --set "training.strategy=$strategy"
  "$python" "$sources/tests/harness/check_dump.py" "$folder/dump.npz" --stages 2,1,1,2 \
    --attention-heads 4 --micro-batches 2 --optimizer "$optimizer" --rate "$rate" --decay 0.1 "$@"
}

check "global" '"global"' sgd 0.05
check "3-wise" '{"kind": "interlocking", "n_wise": 3}' sgd-momentum 0.05 --n-wise 3
check "pairwise" '"pairwise"' adam 0.001 --n-wise 2
check "local" '"local"' adam 0.001 --n-wise 1
check "3-wise, sum" '{"kind": "interlocking", "n_wise": 3, "gradient": "sum"}' sgd 0.05 \
  --n-wise 3 --gradient sum
