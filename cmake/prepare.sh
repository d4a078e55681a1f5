# Sourced by run, test and .ci/run: installs what is missing, configures and builds build/.
# Expects `root`, the root of the tree. Everything it says goes to standard error.
# shellcheck shell=bash
# shellcheck disable=SC2154  # root is set by who sources this

say() { printf '%s\n' "$*" >&2; }

# Libraries by their Debian packages; each stands behind a find_package of a CMakeLists.txt. The program needs the first
# line, what trains and calibrates (train, calibrate, validate) the second, the tests the third.
program_libraries=(libsimgrid-dev nlohmann-json3-dev libcli11-dev libcpp-httplib-dev libjs-codemirror libsqlite3-dev
  libssl-dev pkg-config libtomlplusplus-dev libyaml-cpp-dev zlib1g-dev)
harness_libraries=(libeigen3-dev libzip-dev)
test_libraries=(doctest-dev)

# missing_packages LIBRARY...: names what is missing, one package a line. Tools count as there however they were installed.
missing_packages() {
  local package installed
  command -v c++ >/dev/null || echo build-essential
  command -v cmake >/dev/null || echo cmake
  command -v ninja >/dev/null || echo ninja-build
  # Without dpkg the configuration finds out.
  command -v dpkg-query >/dev/null || return 0
  installed=$(dpkg-query --show --showformat='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
  for package in "$@"; do
    [[ $'\n'$installed$'\n' == *$'\n'"$package installed"$'\n'* ]] || echo "$package"
  done
}

# quietly COMMAND...: its output is shown only if it fails.
quietly() {
  local output status=0
  output=$("$@" 2>&1 </dev/null) || status=$?
  ((status == 0)) || say "$output"
  return "$status"
}

# install_packages NAME...
install_packages() {
  local as_root=()
  if ! command -v apt-get >/dev/null; then
    say "missing: $*"
    say "install what holds these Debian packages on your system, then try again"
    exit 2
  fi
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
      say "missing: $*"
      say "install them as root (apt-get install $*), then try again"
      exit 2
    fi
    as_root=(sudo)
  fi
  say "installing $* ..."
  local get=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300)
  # A fresh system has no package lists yet.
  "${get[@]}" install -y --no-install-recommends "$@" >/dev/null 2>&1 && return
  quietly "${get[@]}" update || exit 2
  quietly "${get[@]}" install -y --no-install-recommends "$@" || exit 2
}

# configure: what CMake says is shown only if it fails.
configure() {
  say "configuring interlock ..."
  # shellcheck disable=SC2086  # one word an option
  quietly cmake -S "$root" -B "$root/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DINTERLOCK_CCACHE=ON \
    ${INTERLOCK_CMAKE_OPTIONS-} && return
  command -v dpkg-query >/dev/null && exit 1
  say "is one of these missing? They are Debian's names: $*"
  exit 2
}

# compile TARGET: in one line on a terminal, silent elsewhere unless it fails.
compile() {
  local begin=$SECONDS
  if [[ -t 2 ]]; then
    (cd -- "$root/build" && NINJA_STATUS="[%f/%t] %e s  " ninja "$1" >&2) || exit 1
  else
    quietly ninja -C "$root/build" "$1" || exit 1
  fi
  say "built in $((SECONDS - begin)) s"
}

# was_configured TARGET: whether CMake has run since packages were installed. Tests look for what is optional each time.
was_configured() {
  [[ $1 != all && -f $root/build/.configured && ! /var/lib/dpkg/status -nt $root/build/.configured ]]
}

# has_target NAME: whether CMake found what the target takes.
has_target() {
  case $1 in
    all) [[ -f $root/build/tests/CTestTestfile.cmake ]] ;;
    harness) grep -q libinterlock_harness "$root/build/build.ninja" ;;
  esac
}

# build_target NAME LIBRARY...: builds build/ in Release up to the Ninja target NAME, which needs these packages.
build_target() {
  local missing home target=$1
  shift
  missing=$(missing_packages "$@")
  # shellcheck disable=SC2086  # one word a package
  [[ -z $missing ]] || install_packages $missing

  mkdir -p "$root/build"
  # Two callers at once take turns.
  exec {lock}>"$root/build/.lock"
  if ! flock --nonblock "$lock"; then
    say "waiting for another build of this folder ..."
    flock "$lock"
  fi
  # A tree that was moved or copied starts afresh: CMake refuses another tree's build folder.
  home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "$root/build/CMakeCache.txt" 2>/dev/null || true)
  [[ -z $home || $home == "$root" ]] || find "$root/build" -mindepth 1 -maxdepth 1 ! -name .lock -exec rm -rf -- {} +
  # Clones share what ccache keeps.
  export CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1
  if ! was_configured "$target"; then
    rm -f -- "$root/build/.configured"
    configure "$@"
    touch -- "$root/build/.configured"
  fi
  if ! has_target "$target"; then
    say "is one of these missing? They are Debian's names: $*"
    exit 2
  fi
  # A module that is there is kept as new as the program.
  [[ $target != program || ! -e $root/build/bin/libinterlock_harness.so ]] || target=harness
  if [[ $(ninja -C "$root/build" -n "$target" 2>&1 | tail -n 1) != "ninja: no work to do." ]]; then
    say "building interlock ..."
    compile "$target"
  fi
  exec {lock}>&-
}
