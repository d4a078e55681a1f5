#!/usr/bin/env bash
# Refuses retired words in code and pages, and comments that open without a verb or a name.
# Usage: check_words.sh [FOLDER]; HACKING.md has the words that we use instead.
set -euo pipefail
export LC_ALL=C
cd -- "${1:-$(dirname -- "${BASH_SOURCE[0]}")/..}"

# Pages that are made of other files, or that another page replaces.
made='^\./reports/published/'

files() {
  find . \( -name .git -o -name 'build*' \) -prune -o -type f \
    \( -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' -o -name '*.js' -o -name '*.css' \
    -o -name '*.md' -o -name 'CMakeLists.txt' -o -name '*.cmake' \) -print | grep -Ev "$made" | sort
}

check() {
  awk '
  function bad(what) { printf "%s:%d: %s\n", FILENAME, FNR, what; failed = 1 }
  function retire(words, better) { instead[words] = better; pattern[words] = "(^|[^A-Za-z_])" words "([^A-Za-z_]|$)" }
  BEGIN {
    retire("the begin", "the start"); retire("in the mean", "on average")
    retire("so many", "the number, or the name of what is counted")
    retire("somebody", "who or what does it"); retire("nobody", "no rank, no reader, ...")
    retire("everybody", "who or what does it"); retire("whoever", "who or what does it")
    retire("that which", "the name of the thing"); retire("what there is", "the name of the thing")
    retire("mended", "repaired"); retire("as good in time", "the same time")
    retire("Judgements", "full simulations"); retire("Looks", "quick estimates")
  }
  FNR == 1 { after_comment = opens = 0; code = FILENAME ~ /\.(h|cc|cu|cuh|js)$/; header = FILENAME ~ /\.(h|cuh)$/ && FILENAME !~ /^\.\/tests\// }
  # A line of the change log that tells which words changed names them.
  !/^- Words: / {
    low = tolower($0)
    for (words in instead) if ((words ~ /[A-Z]/ ? $0 : low) ~ pattern[words])
      bad("\"" words "\" is retired; write " instead[words])
  }
  code {
    comment = $0 ~ /^[ \t]*\/\//
    if (match($0, /(^|[ \t])\/\/\/?<? (Of|What|Whether|Likewise|The same|Where)[ ,]/) && !(comment && after_comment))
      bad("a comment opens with a verb or names the thing, not with " word_at(substr($0, RSTART)))
    # A comment on a function of a header says what the function does: "Returns the ...".
    if (!after_comment && match($0, /^[ \t]*\/\/\/ (The|A|An|All|One|Every|Its|Why|How|True|Bytes|Links|Devices|Nodes) /)) opens = FNR
    if (!comment && opens) {
      if (header && $0 ~ /^[ \t]*([A-Za-z_][A-Za-z_:<>,*& ]*[ *&])[a-z_][a-z0-9_]*\(/ && $0 !~ /^[ \t]*(using|return|struct|class)|=.*\(/)
        { printf "%s:%d: a comment on a function opens with a verb: Returns, Adds, ...\n", FILENAME, opens; failed = 1 }
      opens = 0
    }
    after_comment = comment && $0 !~ /SPDX-License-Identifier/
  }
  # Nouns of code, each of which has one meaning.
  code && !/^#include/ {
    if (FILENAME !~ /^\.\/(tests\/)?(reports|browser)\// && (/(^|[^A-Za-z])lanes?([^a-z]|$)/ || /(^|[^A-Z])Lanes?([^a-z]|$)/))
      bad("a lane is a row of a picture; write communicator, stream or slot")
    if (FILENAME !~ /^\.\/(reports\/charts|tests\/reports)\// && /[a-z]_figures([^a-z]|$)|[a-z]Figures([^a-z]|$)|struct Figure([^a-z]|$)/)
      bad("a figure is a picture; write headline for a number shown first, summary for errors")
    if (FILENAME !~ /^\.\/hardware\// && /(struct|class) Machine([^A-Za-z]|$)/) bad("a machine is hardware of the catalogue; write what emulates or runs")
    if (/(^|[^A-Za-z_])(begin|end|stash)_copy([^A-Za-z_]|$)/) bad("a copy is one of several models on the same ranks; write host_copy for bytes on their way to a host")
    if (/(^|[^A-Za-z])(Batch|Sliced)Parts?([^A-Za-z]|$)/) bad("a part is of a layer; write SizedBatch or SlicedBatch for a micro-batch of its own size")
    if (/(struct|class) Engine([^A-Za-z]|$)/) bad("an engine runs a program; write context, queue or what it is")
  }
  function word_at(text) { sub(/^[ \t]*\/\/\/?<? /, "", text); sub(/[ ,].*/, "", text); return text }
  END { exit failed }
  ' "$@"
}

mapfile -t list < <(files)
if ((${#list[@]} == 0)); then
  echo "no files to check in $PWD" >&2
  exit 1
fi
check "${list[@]}"
echo "no retired words in ${#list[@]} files"
