#!/usr/bin/env bash
# Compares what two programs answer: the result JSON of every scenario that is shipped, byte for byte.
# Usage: cmake/same_results.sh OLD NEW [--published]   (programs; with --published also every published row)
# Prints the scenarios that differ, then how many were the same; exit code 1 if any differs.
set -euo pipefail
root=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.." && pwd -P)
cd -- "$root"
[[ $# -ge 2 && -f $1 && -x $1 && -f $2 && -x $2 ]] || { sed -n 2,4p "${BASH_SOURCE[0]}" >&2; exit 2; }
old=$(readlink -f -- "$1") new=$(readlink -f -- "$2")
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
export INTERLOCK_DATA=$root work old new

# Leaves out what the clock says, and which version speaks.
timeless() { sed -E 's/"(wall|engine_wall|simulation)[a-z_]*_s": [0-9.e+-]+/"\1_s": 0/; s/"program_version": "[0-9.]+"/"program_version": ""/'; }
# answer PROGRAM SCENARIO: its result, or how it was refused.
answer() {
  "$1" simulate --quiet --json - "$2" 2>&1 | timeless || true
}
compare() {
  local key=${1//\//_}
  answer "$old" "$1" >"$work/$key.old"
  answer "$new" "$1" >"$work/$key.new"
  if cmp -s "$work/$key.old" "$work/$key.new"; then echo same; else echo "differs: $1"; fi
}
export -f timeless answer compare

{
  find scenarios -name '*.json' -not -path '*/frameworks/*' -not -path '*/ranges/*' -print0 |
    xargs -0 -n 1 -P "$(nproc)" bash -c 'compare "$1"' compare
  if [[ ${3-} == --published ]]; then
    for program in old new; do
      "${!program}" validate published --quiet --all-rows --json "$work/rows" >/dev/null
      timeless <"$work/rows" >"$work/rows.$program"
    done
    if cmp -s "$work/rows.old" "$work/rows.new"; then echo same; else echo "differs: published rows"; fi
  fi
} | sort >"$work/said"
grep '^differs' "$work/said" || true
echo "the same: $(grep -c '^same' "$work/said")"
! grep -q '^differs' "$work/said"
