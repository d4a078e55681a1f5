#!/usr/bin/env bash
# Installs a package in a root of Debian's SUITE that holds nothing else, no compiler either, and runs the quickstart there, a scenario that shares links, and published rows.
# Usage: check_in_bare_root.sh SUITE PACKAGE (.deb: installed with what it depends on; .tar.gz: unpacked, and nothing installed)
set -euo pipefail
here=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd -P)
source "$here/../../cmake/bare_root.sh"
suite=$1 package=$2
folder=$(mktemp -d)
trap 'rm -rf --one-file-system -- "$folder"' EXIT
trap 'exit 130' INT TERM
make_bare_root "$suite" "$folder/root"
cp -- "$package" "$folder/root/tmp/"
name=/tmp/$(basename -- "$package")
case $package in
*.deb)
  in_root "$folder/root" bash -c "apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends '$name'"
  where=/usr
  ;;
*.tar.gz)
  where="/opt/any where"
  in_root "$folder/root" bash -c "mkdir '$where' && tar -xzf '$name' --strip-components 1 -C '$where'"
  ;;
*) echo "expected a .deb or a .tar.gz, got $package" >&2 && exit 2 ;;
esac
! in_root "$folder/root" bash -c 'command -v c++ cc gcc' || { echo "there is a compiler in a bare root" >&2 && exit 1; }
# shellcheck disable=SC2016  # expanded there
in_root "$folder/root" bash -ec '
  cd /tmp
  examples=$1/share/interlock/scenarios
  "$1/bin/interlock" compare --report report.html "$examples"/quickstart/*.json
  grep -q "</html>" report.html
  "$1/bin/interlock" simulate "$examples/examples/networks.json" --quiet --json networks.json
  grep -q "\"engine\": \"simgrid\"" networks.json
  "$1/bin/interlock" validate published --source terapipe
' quickstart "$where"
echo "$(basename -- "$package") works on $suite"
