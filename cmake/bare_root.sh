# Sourced by scripts that try things on another Debian: makes roots with nothing but a base system, and runs commands in them.
# Needs root and debootstrap.
# shellcheck shell=bash

# Prints the mirror that this machine installs its own packages from.
bare_mirror() {
  # shellcheck disable=SC2016  # apt's fields
  apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(COMPONENT) $(CODENAME)' 'Created-By: Packages' |
    awk '$2 == "Debian" && $3 == "main" && $4 !~ /-/ { print $1; exit }'
}

# make_bare_root SUITE FOLDER: Debian's SUITE in FOLDER, which reaches packages in the way this machine does.
make_bare_root() {
  local suite=$1 folder=$2 mirror log
  if ((EUID != 0)) || ! command -v debootstrap >/dev/null; then
    echo "a bare root needs root, and debootstrap (apt-get install debootstrap)" >&2
    return 2
  fi
  mirror=$(bare_mirror)
  if [[ -z $mirror ]]; then
    echo "apt names no mirror of Debian: run apt-get update, or add one to /etc/apt/sources.list" >&2
    return 2
  fi
  mkdir -p -- "$folder"
  log=$(mktemp)
  if ! debootstrap --variant=minbase "$suite" "$folder" "$mirror" >"$log" 2>&1; then
    cat -- "$log" >&2
    rm -f -- "$log"
    return 1
  fi
  rm -f -- "$log"
  # Proxies and the like, not what this machine has under these names besides.
  apt-config dump 2>/dev/null | grep -E '^Acquire::(http|https|ftp|Retries|Check-|ForceIP)' >"$folder/etc/apt/apt.conf.d/90host" || true
  [[ ! -d /etc/apt/auth.conf.d ]] || cp -a -- /etc/apt/auth.conf.d "$folder/etc/apt/"
}

# in_root FOLDER COMMAND...: runs a command in a root, from its /, in an environment of its own. Mounts are seen by that
# command alone and end with it, however it ends.
in_root() {
  # shellcheck disable=SC2016  # the inner shell expands
  unshare --mount --propagation private --pid --fork --kill-child bash -c '
    root=$1
    shift
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    settings=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root)
    for name in http_proxy https_proxy no_proxy; do
      [[ -z ${!name-} ]] || settings+=("$name=${!name}")
    done
    exec chroot "$root" /usr/bin/env -i "${settings[@]}" "$@"
  ' in_root "$@"
}
