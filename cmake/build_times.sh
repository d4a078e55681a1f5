#!/usr/bin/env bash
# Prints where the time of a build went, by folder and by object, from Ninja's log: wall time of each command.
# Usage: cmake/build_times.sh [BUILD FOLDER] [ROWS]   (build and 20 if left out)
# What was built several times counts once, the last time. Build with one job for times that nothing else stretched.
set -euo pipefail
folder=${1:-$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../build} rows=${2:-20}
[[ -f $folder/.ninja_log ]] || { sed -n 2,4p "${BASH_SOURCE[0]}" >&2; exit 2; }

# One line for each output, "milliseconds path". A command with several outputs has a line for each; one is enough.
times() {
  awk -F '\t' '
    /^#/ { next }
    { took[$4] = $2 - $1; command[$4] = $1 " " $2 " " $5 }
    END { for (path in took) if (!(command[path] in seen)) { seen[command[path]] = 1; print took[path], path } }
  ' "$folder/.ninja_log"
}

printf '%8s  %s\n' seconds folder
times | awk '
  { path = $2; all += $1
    if (path !~ /\.o$/) where = "linking and the rest"
    else { sub(/\/CMakeFiles\/.*/, "", path); where = path }
    spent[where] += $1 }
  END { for (where in spent) printf "%8.1f  %s\n", spent[where] / 1000, where
        printf "%8.1f  in all\n", all / 1000 }' | sort -rn
printf '\n%8s  %s\n' seconds longest
times | sort -rn | awk -v rows="$rows" 'NR <= rows { printf "%8.1f  %s\n", $1 / 1000, $2 }'
