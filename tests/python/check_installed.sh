#!/usr/bin/env bash
# Installs the package into a new venv by `pip install ./python` without a network, and uses it from another folder; then the wheel that CMake
# makes. Usage: check_installed.sh PYTHON BUILD SOURCE. Exit code 77: venv is missing.
set -euo pipefail
python=$1 build=$2 source=$3
"$python" -c 'import ensurepip, venv' 2>/dev/null || { echo "skipped: pip install ./python; install python3-venv to run it"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
fail() { echo "$*" >&2; exit 1; }

# Neither the source tree, nor a setting, nor a network may help.
unset INTERLOCK_DATA PYTHONPATH
export INTERLOCK_BUILD=$build PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONNOUSERSITE=1 https_proxy=http://127.0.0.1:9
venv="$folder/a venv"
"$python" -m venv "$venv"
cd -- "$folder"
"$venv/bin/pip" install --quiet "$source/python" >log 2>&1 || { cat log >&2; exit 1; }

cat >use.py <<'END'
import interlock, sys
step = interlock.simulate(sys.argv[1])
assert step.step_time_s > 0 and step.plot().svg and step._repr_html_()
assert interlock.explain(sys.argv[1]).changes
if sys.argv[2:]:  # by the program that the package brings
    assert interlock.simulate(sys.argv[1], engine="simgrid").to_dict()["engine"] == "simgrid"
print(interlock.__version__, interlock.__file__)
END
scenario=$source/scenarios/examples/gpt2-xl-1f1b.json
engine=simgrid
[[ -e $build/bin/interlock-simgrid ]] || engine=""
said=$("$venv/bin/python" use.py "$scenario" $engine)
version=$(sed -n 's/^project(interlock VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
[[ $said == "$version $folder/a venv/"* ]] || fail "the installed package says $said"
[[ $("$venv/bin/pip" list --format freeze) == *"interlock==$version"* ]] || fail "pip does not list interlock $version"
if command -v strace >/dev/null; then
  strace -f -e trace=openat,open -o calls "$venv/bin/python" use.py "$scenario" >/dev/null
  ! grep -F "\"$source/" calls | grep -vF "\"$source/scenarios/examples/" | grep -v ENOENT || fail "the installed package reads the source tree"
fi
"$venv/bin/pip" uninstall --quiet --yes interlock
! "$venv/bin/python" use.py "$scenario" 2>/dev/null || fail "the package is there after it was uninstalled"

wheels=("$build"/interlock-"$version"-cp*.whl)
[[ -e ${wheels[0]} ]] || fail "no wheel in $build"
"$venv/bin/pip" install --quiet "${wheels[0]}"
"$venv/bin/python" use.py "$scenario" $engine >/dev/null || fail "the wheel that CMake made does not work"
echo "the installed package works from any folder"
