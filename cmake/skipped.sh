# Sourced by test: says at the end what was left out, and what to install for it.
# shellcheck shell=bash

# tell_skipped LOG: the lines "skipped: WHAT; install PACKAGE to run it" of ctest's log, each once.
tell_skipped() {
  local lines
  lines=$(grep '^skipped: ' "$1" 2>/dev/null | sort -u) || return 0
  say ""
  say "$lines"
}
