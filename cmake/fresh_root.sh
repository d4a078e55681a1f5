#!/usr/bin/env bash
# Tries the README's two commands where nothing was prepared: makes a root of Debian's SUITE (bookworm, trixie), clones the last commit of this tree into
# it at a path with a space, runs ./run, then ./test, then the tests of the Python package, then makes packages and tries them in bare roots.
# Usage: cmake/fresh_root.sh [--packages FOLDER] [--no-test] SUITE
# Prints how long each took, what became of it, and what was installed. Exit code 0: all of it worked.
# --packages keeps the packages in FOLDER; tarballs that lie there, made on an older suite, are tried too.
# --no-test leaves out ./test. Needs root and debootstrap (apt-get install debootstrap), packages from where this machine has its own, and about 6 GB in
# TMPDIR. Nothing stays there, and nothing stays mounted.
set -euo pipefail
tree=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/.." && pwd -P)
source "$tree/cmake/bare_root.sh"

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; }
suite='' kept='' tests=yes
while (($# > 0)); do
  case $1 in
  --packages) kept=$(mkdir -p -- "$2" && cd -- "$2" && pwd -P) && shift ;;
  --no-test) tests=no ;;
  --help) usage && exit ;;
  -*) usage >&2 && exit 2 ;;
  *) suite=$1 ;;
  esac
  shift
done
[[ -n $suite ]] || { usage >&2 && exit 2; }

folder=$(mktemp -d)
trap 'rm -rf --one-file-system -- "$folder"' EXIT
trap 'exit 130' INT TERM
root=$folder/$suite
home="/root/a folder/interlock"
failed=0
[[ -n $kept ]] || { kept=$folder/packages && mkdir -- "$kept"; }

# part NAME COMMAND...: how long it took and what became of it; its output only if it failed.
part() {
  local begin=$SECONDS status=0
  "${@:2}" >"$folder/log" 2>&1 </dev/null || status=$?
  ((status == 0)) || { tail -n 200 "$folder/log" && failed=1; }
  printf '%-10s %-28s %5d s  %s\n' "$suite" "$1" $((SECONDS - begin)) "$( ((status == 0)) && echo ok || echo "failed ($status)")"
  return "$status"
}

installed() { chroot "$root" dpkg-query --show --showformat='${Package} ${Version}\n' | sort; }

# in_tree COMMAND: a line of shell, in the clone.
in_tree() { in_root "$root" bash -c "cd '$home' && $1"; }

# What ./test skips there for want of packages: the Python package, in the build tree and installed by pip.
test_python() {
  local packages
  read -ra packages <<<"$(sed -n 's/^set(python_packages "\(.*\)")$/\1/p' "$tree/tests/python/CMakeLists.txt")"
  in_root "$root" apt-get install -y --no-install-recommends "${packages[@]}" &&
    in_tree './test -R "^(python|installed_python)$"' | tee "$folder/python" && ! grep -q Skipped "$folder/python"
}

make_packages() {
  # Of a package train, calibrate and validate are a part, whether they were built before or not.
  in_root "$root" apt-get install -y --no-install-recommends file libeigen3-dev libzip-dev &&
    in_tree 'cmake build && cmake --build build && cd build && cpack -B /root/packages' &&
    cp -- "$root"/root/packages/*.deb "$root"/root/packages/*.tar.gz "$kept/"
}

part "root" make_bare_root "$suite" "$root" || exit 1
part "clone" git clone --quiet --no-hardlinks "$tree" "$root$home" || exit 1
installed >"$folder/before"
part "./run" in_tree './run && grep -q "</html>" interlock-report.html' && {
  [[ $tests == no ]] || part "./test" in_tree ./test || true
  grep -E '^[0-9]+% tests passed|tests failed|Total Test time|Skipped|\*\*\*' "$folder/log" || true
  [[ $tests == no ]] || part "python" test_python || true
  part "packages" make_packages || true
}
echo "installed by them:"
comm -13 "$folder/before" <(installed) | paste -sd ' ' | fold -s -w 150
rm -rf --one-file-system -- "$root"
for package in "$kept"/*.tar.gz "$kept"/interlock_*"~deb"*.deb; do
  # A package of Debian is for the suite that it was made on.
  [[ -e $package && ($package != *.deb || $package -nt $folder/before) ]] || continue
  part "$(basename -- "$package")" "$tree/tests/package/check_in_bare_root.sh" "$suite" "$package" || true
done
exit "$failed"
