#!/bin/sh
# Runs Holistic Trace Analysis on files of --kineto and compares its figures with the program's.
# SPDX-License-Identifier: Apache-2.0
# Usage: check_hta.sh PROGRAM PYTHON SOURCES. $INTERLOCK_HTA, if set, is a folder that holds the
# package "hta". Exit code 77: it is not there.
set -eu
program=$1
python=$2
sources=$3

[ -z "${INTERLOCK_HTA:-}" ] || export PYTHONPATH="$INTERLOCK_HTA${PYTHONPATH:+:$PYTHONPATH}"
"$python" -c 'import hta.trace_analysis' 2>/dev/null || {
  echo "skipped: Holistic Trace Analysis on our traces; install PyPI's HolisticTraceAnalysis to run it (INTERLOCK_HTA: its folder)"
  exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/ranks"
"$python" "$sources/tests/reports/check_hta.py" "$program" "$folder"
