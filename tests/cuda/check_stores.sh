#!/usr/bin/env bash
# Kernels that work on rows in packs must store packs as packs: reads what nvcc makes of them for sm_90.
# Usage: check_stores.sh NVCC ROOT
set -euo pipefail
nvcc=$1 root=$2
made=$(mktemp -d)
trap 'rm -rf -- "$made"' EXIT
checked=0
for kernel in layer_norm causal_softmax; do
  "$nvcc" -std=c++17 -O3 -arch=sm_90 -ptx -I"$root" -o "$made/$kernel.ptx" "$root/validate/cuda/kernels/$kernel.cu"
  # A line for each kernel of packs that writes rows: its name, and whether it has a store of 16 bytes.
  while read -r name whole; do
    ((checked += 1))
    ((whole > 0)) || { echo "$kernel.cu: $name stores numbers one by one; see store() in element.cuh"; exit 1; }
  done < <(awk '
    /\.entry/ { if (name) print name, whole; name = $0 ~ /(norm|softmax)_rows(_gradient)?ILi[48]E/ ? $NF : ""; whole = 0 }
    name && /st\.global[a-z.]*\.v4/ { ++whole }
    END { if (name) print name, whole }' "$made/$kernel.ptx")
done
((checked == 8)) || { echo "$checked kernels of packs were found, not 8"; exit 1; }
echo "8 kernels store 16 bytes at once"
