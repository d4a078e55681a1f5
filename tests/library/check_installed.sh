#!/usr/bin/env bash
# Installs the build into a folder with a blank in its name, builds examples/ against it with find_package, and runs them; looks at what the
# library shows and prints. Usage: check_installed.sh BUILD SOURCE. CC, CXX, LDFLAGS and SANITIZERS: the compilers and flags of a build with a sanitizer.
set -euo pipefail
build=$1 source=$2 sanitizers=${SANITIZERS:-}
folder=$(mktemp -d)
trap 'rm -rf -- "$folder"' EXIT
fail() { echo "$*" >&2; exit 1; }

prefix="$folder/any where"
cmake --install "$build" --prefix "$prefix" >"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }
library=$prefix/lib/libinterlock.so.0
[[ -e $library ]] || fail "no $library"

# Every name that it shows is in its header.
shown=$(nm --dynamic --defined-only --demangle "$library" | cut -d ' ' -f 3-)
foreign=$(grep -vE '^(INTERLOCK_[0-9.]+|interlock_[a-z_]+(@.*)?|((typeinfo|typeinfo name|vtable) for )?interlock::v0::.*)$' <<<"$shown" || true)
[[ -z $foreign ]] || fail "libinterlock.so shows $foreign"
for name in 'interlock::v0::simulate(' 'interlock::v0::Result::devices(' interlock_simulate; do
  grep -qF "$name" <<<"$shown" || fail "libinterlock.so does not show $name"
done
# grep reads to the end: a reader that leaves early would make objdump fail.
objdump -p "$library" | grep 'SONAME *libinterlock.so.0$' >/dev/null || fail "another soname than libinterlock.so.0"

# Neither the source tree nor a setting may help.
unset INTERLOCK_DATA
cp -r -- "$source/examples" "$folder/the examples"
cmake -S "$folder/the examples" -B "$folder/made here" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_CXX_FLAGS="-std=c++17 -Wall -Wextra -pedantic -Werror $sanitizers" -DCMAKE_C_FLAGS="-std=c99 -Wall -Wextra -pedantic -Werror $sanitizers" >"$folder/log" 2>&1 &&
  cmake --build "$folder/made here" >>"$folder/log" 2>&1 || { cat "$folder/log" >&2; exit 1; }
cd -- "$folder/made here"
./what_if >what_if.txt
grep -qE '^ +8 +[0-9.]+ +[0-9]+% +[0-9.]+$' what_if.txt || fail "what_if says $(cat what_if.txt)"
# The page shows this program, and what it says.
page=$(<"$source/docs/library.md")
[[ $page == *"$(tail -n +3 "$source/examples/what_if.cc")"* && $page == *"$(<what_if.txt)"* ]] ||
  fail "docs/library.md shows another what_if.cc, or another output: $(cat what_if.txt)"
./own_schedule picture.svg >own_schedule.txt
head -c 4 picture.svg | grep -q '<svg' || fail "own_schedule drew no picture"
# (8 + 3) micro-batches of 6 ms, and three messages each way of 16 MB at 25 GB/s.
[[ $(head -n 1 own_schedule.txt) == "a step takes 69.8 ms" && $page == *"$(head -n 2 own_schedule.txt)"* ]] || fail "own_schedule says $(cat own_schedule.txt)"
./from_c >from_c.txt
(($(grep -c '^status 0, "step_time_s": ' from_c.txt) == 2)) || fail "from_c says $(cat from_c.txt)"
grep -q '^status 2, "message": .*did you mean' from_c.txt || fail "from_c says $(cat from_c.txt)"

# SimGrid runs in a program that is installed with the library, and a host that lacks it is told where it was looked for.
if [[ -e $build/bin/interlock-simgrid ]]; then
  cat >simgrid.c <<'END'
#include <interlock/interlock_c.h>
#include <stdio.h>
int main(void) {
  char* answer = NULL;
  const int status = interlock_simulate(
      "{\"model\": \"gpt2-xl\", \"cluster\": {\"machine\": \"dgx-a100-80g\", \"devices\": 4}, \"parallel\": {\"pipeline\": 4},"
      " \"training\": {\"strategy\": \"global\", \"global_batch_size\": 16}}", "{\"engine\": \"simgrid\"}", &answer);
  printf("%s", answer);
  interlock_free(answer);
  return status;
}
END
  # shellcheck disable=SC2086 # several words
  ${CC:-cc} $sanitizers ${LDFLAGS:-} -std=c99 -I "$prefix/include" simgrid.c -o simgrid "$library" "-Wl,-rpath,$prefix/lib"
  env -u PATH ./simgrid >simgrid.json || fail "no SimGrid for the installed library: $(<simgrid.json)"
  grep -q '"engine": "simgrid"' simgrid.json || fail "SimGrid did not run for the installed library"
  mv "$prefix/lib/interlock/interlock-simgrid" away
  ./simgrid >missing.json && fail "SimGrid ran without its program"
  (($? == 2)) && grep -qF "cannot start the engine's program $prefix/lib/interlock-simgrid: No such file or directory" missing.json ||
    fail "without its program the library says $(<missing.json)"
  mv away "$prefix/lib/interlock/interlock-simgrid"
fi

# The header needs no other of ours, also in C of 1989.
printf '#include <interlock/interlock_c.h>\nint main(void) { return interlock_version() == 0; }\n' >old.c
# shellcheck disable=SC2086 # several words
${CC:-cc} $sanitizers ${LDFLAGS:-} -std=c89 -pedantic -Wall -Werror -I "$prefix/include" old.c -o old "$library" || fail "the C header is no C89"
# What is found is in the installation, not where it was built.
if command -v strace >/dev/null; then
  # Leaks cannot be looked for under strace.
  ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 strace -f -e trace=openat,open -o calls ./what_if >/dev/null
  ! grep -F "\"$source/" calls | grep -v ENOENT || fail "the installed library reads the source tree"
fi
# Another minor version is not what was asked for.
mkdir other
printf 'cmake_minimum_required(VERSION 3.13)\nproject(other NONE)\nfind_package(interlock 0.1 REQUIRED)\n' >other/CMakeLists.txt
! cmake -S other -B other/made -DCMAKE_PREFIX_PATH="$prefix" >log 2>&1 || fail "0.2 stands in for 0.1"
echo "the installed library does what its examples ask"
