#!/usr/bin/env bash
# Makes the Debian package, unpacks it elsewhere, and runs what was unpacked from a third folder: results are those of the
# build tree. Usage: check_package.sh BUILD SOURCE. Exit code 77: the tools for packages are missing.
set -euo pipefail
build=$1 source=$2
for tool in cpack dpkg-deb dpkg-shlibdeps file; do
  command -v "$tool" >/dev/null || { echo "$tool is not installed: no package is made"; exit 77; }
done
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
fail() { echo "$*" >&2; exit 1; }

cpack -G DEB --config "$build/CPackConfig.cmake" -B "$folder/made" >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }
packages=("$folder"/made/*.deb)
((${#packages[@]} == 1)) || fail "expected one package, got ${packages[*]}"
depends=$(dpkg-deb --field "${packages[0]}" Depends)
echo "depends on: $depends"
for library in libsimgrid libc6 libstdc++6 zlib1g; do
  [[ $depends == *"$library"* ]] || fail "no dependency on $library"
done

dpkg -x "${packages[0]}" "$folder/root"
program=$folder/root/usr/bin/interlock
share=$folder/root/usr/share
for path in share/interlock/scenarios/scenario.schema.json share/interlock/models/zoo/gpt2-xl.json \
  share/interlock/hardware/catalogue/dgx-h100.json share/interlock/hardware/catalogue/devices/h100.json \
  share/interlock/scenarios/frameworks/nemo.json share/interlock/scenarios/examples/gpt2-xl-1f1b.json \
  share/doc/interlock/copyright share/doc/interlock/docs/scenario.md lib/interlock/libinterlock_simgrid.so \
  share/man/man1/interlock.1.gz share/bash-completion/completions/interlock share/zsh/vendor-completions/_interlock \
  share/fish/vendor_completions.d/interlock.fish; do
  [[ -e $folder/root/usr/$path ]] || [[ -e $folder/root/usr/${path%.gz} ]] || fail "the package has no $path"
done
[[ -z $(find "$folder/root" -name '*.cc' -o -name '*.h' -o -name 'CMakeLists.txt') ]] || fail "sources are in the package"

# Neither the source tree nor a setting may help.
mkdir "$folder/elsewhere"
cd -- "$folder/elsewhere"
unset INTERLOCK_DATA
examples=$share/interlock/scenarios/examples
# Wall time is the only thing that differs.
without_time() { grep -v '"wall_time_s"' "$1"; }
for scenario in gpt2-xl-1f1b.json networks.json; do
  "$program" simulate "$examples/$scenario" --json installed.json --quiet
  "$build/bin/interlock" simulate "$source/scenarios/examples/$scenario" --json built.json --quiet
  diff <(without_time installed.json) <(without_time built.json) >&2 || fail "$scenario: the installed program says something else"
done
"$program" list >installed.txt
"$build/bin/interlock" list >built.txt
cmp installed.txt built.txt || fail "list differs"
"$program" schema | cmp - "$source/scenarios/scenario.schema.json" || fail "schema differs"
# Through SimGrid, which is opened at run time.
"$program" simulate "$examples/four-equal-stages.json" --engine simgrid --quiet --json simgrid.json || fail "no SimGrid"
grep -q '"engine": "simgrid"' simgrid.json || fail "SimGrid did not run"
# What the program finds is in the package, not where it was built.
strace=$(command -v strace || true)
if [[ -n $strace ]]; then
  "$strace" -f -e trace=openat,open -o calls "$program" list >/dev/null
  ! grep -F "\"$source/" calls | grep -v ENOENT || fail "the installed program reads the source tree"
fi
INTERLOCK_DATA=$folder/nowhere "$program" schema 2>/dev/null && fail "INTERLOCK_DATA is not heard"
echo "installed and built say the same"
