#!/usr/bin/env bash
# Makes the Debian package and the tarball, unpacks them elsewhere, and runs what was unpacked from a third folder: results are those of the
# build tree. Usage: check_package.sh BUILD SOURCE. Exit code 77: the tools for packages are missing. In bare systems: check_in_bare_root.sh.
set -euo pipefail
build=$1 source=$2
for tool in cpack dpkg-deb dpkg-shlibdeps file; do
  command -v "$tool" >/dev/null || { echo "skipped: the Debian package (no $tool); install dpkg-dev and file to run it"; exit 77; }
done
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
fail() { echo "$*" >&2; exit 1; }

cpack --config "$build/CPackConfig.cmake" -B "$folder/made" >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }
packages=("$folder"/made/interlock_*.deb)
((${#packages[@]} == 1)) || fail "expected one package of the program, got ${packages[*]}"
headers=("$folder"/made/libinterlock-dev_*.deb)
((${#headers[@]} == 1)) || fail "expected one package of headers, got ${headers[*]}"
[[ $(dpkg-deb --field "${headers[0]}" Depends) == "interlock (= $(dpkg-deb --field "${packages[0]}" Version))" ]] ||
  fail "the headers depend on $(dpkg-deb --field "${headers[0]}" Depends)"
depends=$(dpkg-deb --field "${packages[0]}" Depends)
echo "depends on: $depends"
engine=libinterlock_simgrid.so
[[ -e $build/bin/$engine ]] || engine=""
for library in ${engine:+libsimgrid} libc6 libstdc++6 zlib1g; do
  [[ $depends == *"$library"* ]] || fail "no dependency on $library"
done

dpkg -x "${packages[0]}" "$folder/root"
program=$folder/root/usr/bin/interlock
share=$folder/root/usr/share
for path in share/interlock/scenarios/scenario.schema.json share/interlock/models/zoo/gpt2-xl.json \
  share/interlock/hardware/catalogue/dgx-h100.json share/interlock/hardware/catalogue/devices/h100.json \
  share/interlock/scenarios/frameworks/nemo.json share/interlock/scenarios/examples/gpt2-xl-1f1b.json \
  share/doc/interlock/copyright share/doc/interlock/docs/reference.md ${engine:+lib/interlock/$engine lib/interlock/interlock-simgrid} lib/interlock/libinterlock_harness.so \
  share/man/man1/interlock.1.gz share/bash-completion/completions/interlock share/zsh/vendor-completions/_interlock \
  share/fish/vendor_completions.d/interlock.fish lib/libinterlock.so.0; do
  [[ -e $folder/root/usr/$path ]] || [[ -e $folder/root/usr/${path%.gz} ]] || fail "the package has no $path"
done
[[ -z $(find "$folder/root" -name '*.cc' -o -name '*.h' -o -name 'CMakeLists.txt') ]] || fail "sources are in the package"

dpkg -x "${headers[0]}" "$folder/headers"
for path in include/interlock/interlock.h include/interlock/interlock_c.h lib/cmake/interlock/interlock-config.cmake \
  lib/cmake/interlock/interlock-config-version.cmake lib/libinterlock.so; do
  [[ -e $folder/headers/usr/$path || -L $folder/headers/usr/$path ]] || fail "the package of headers has no $path"
done

# Neither the source tree nor a setting may help.
mkdir "$folder/elsewhere"
cd -- "$folder/elsewhere"
unset INTERLOCK_DATA
examples=$share/interlock/scenarios/examples
# Wall time is the only thing that differs.
without_time() { grep -v '"wall_time_s"' "$1"; }
scenarios=(gpt2-xl-1f1b.json ${engine:+networks.json}) # the second shares links
for scenario in "${scenarios[@]}"; do
  "$program" simulate "$examples/$scenario" --json installed.json --quiet
  "$build/bin/interlock" simulate "$source/scenarios/examples/$scenario" --json built.json --quiet
  diff <(without_time installed.json) <(without_time built.json) >&2 || fail "$scenario: the installed program says something else"
done
"$program" list >installed.txt
"$build/bin/interlock" list >built.txt
cmp installed.txt built.txt || fail "list differs"
"$program" schema | cmp - "$source/scenarios/scenario.schema.json" || fail "schema differs"
# Through SimGrid, which is opened at run time.
if [[ -n $engine ]]; then
  "$program" simulate "$examples/four-equal-stages.json" --engine simgrid --quiet --json simgrid.json || fail "no SimGrid"
  grep -q '"engine": "simgrid"' simgrid.json || fail "SimGrid did not run"
fi
# What the program finds is in the package, not where it was built.
strace=$(command -v strace || true)
if [[ -n $strace ]]; then
  "$strace" -f -e trace=openat,open -o calls "$program" list >/dev/null
  ! grep -F "\"$source/" calls | grep -v ENOENT || fail "the installed program reads the source tree"
fi
INTERLOCK_DATA=$folder/nowhere "$program" schema 2>/dev/null && fail "INTERLOCK_DATA is not heard"

# The tarball runs from any folder, and brings all libraries but those of the C and C++ languages.
tarballs=("$folder"/made/*.tar.gz)
((${#tarballs[@]} == 1)) || fail "expected one tarball, got ${tarballs[*]}"
mkdir "$folder/any where"
tar -xzf "${tarballs[0]}" --strip-components 1 -C "$folder/any where"
program="$folder/any where/bin/interlock"
for scenario in "${scenarios[@]}"; do
  env -i "$program" simulate "$folder/any where/share/interlock/scenarios/examples/$scenario" --json unpacked.json --quiet
  "$build/bin/interlock" simulate "$source/scenarios/examples/$scenario" --json built.json --quiet
  diff <(without_time unpacked.json) <(without_time built.json) >&2 || fail "$scenario: the unpacked program says something else"
done
if [[ -n $strace ]]; then
  "$strace" -f -e trace=openat,open -o calls "$program" simulate "$source/scenarios/examples/${scenarios[-1]}" --quiet
  foreign=$(grep -oE '"[^"]*\.so[.0-9]*", [^)]*\) = [0-9]+' calls | cut -d '"' -f 2 | grep -vF "$folder/any where/" |
    grep -vE '/(libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|ld-linux-[a-z0-9_-]*)\.so' || true)
  [[ -z $foreign ]] || fail "the tarball lacks what it opens: $foreign"
fi
echo "installed, unpacked and built say the same"
