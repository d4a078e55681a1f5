#!/usr/bin/env bash
# Files an archive of on_gpu.sh into an empty tree, and checks that all of it came where it belongs.
# Usage: check_taken.sh ON_GPU ARCHIVE
set -euo pipefail
tree=$(mktemp -d)
trap 'rm -rf -- "$tree"' EXIT
"$1" --take "$2" "$tree"
cd -- "$tree"
for file in hardware/calibrated/dry{,-1-of-4,-1-of-4-beside-products}.json \
  reports/published/dry/{summary.txt,predictions.sha256,curves.svg} \
  reports/published/dry/{large-blocks,four-1024,two-1024}-{prediction,errors}.json \
  reports/published/dry/four-1024.html; do
  [[ -s $file ]] || { echo "$file is not there"; exit 1; }
done
(cd reports/published/dry && sha256sum --quiet --check predictions.sha256)
# The prediction's checksum stands in what was measured against it.
sum=$(sha256sum reports/published/dry/four-1024-prediction.json | cut -d ' ' -f 1)
grep -q "$sum" reports/published/dry/four-1024-errors.json
! grep -rq failed reports/published/dry/summary.txt
