#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what is missing from the given groups of deploy/packages.txt. Does nothing, quickly, when nothing is.
#   scripts/setup.sh GROUP...          install
#   scripts/setup.sh --list GROUP...   print the packages, one per line (optional ones end in "?")
set -euo pipefail
list="$(dirname "$0")/../deploy/packages.txt"
arch=$(dpkg --print-architecture 2>/dev/null || true)
if [ -z "$arch" ]; then
  echo "setup: this is not Debian. Install by hand what deploy/packages.txt names, then run make again." >&2
  exit 1
fi

# Prints the packages of one group, following @other.
group() {
  local want=$1 line name found=0 inside=0
  while read -r line; do
    line=${line%%#*}
    line=${line%"${line##*[![:space:]]}"}
    case $line in
      '') ;;
      '['*']') if [ "$line" = "[$want]" ]; then inside=1 found=1; else inside=0; fi ;;
      *)
        [ $inside = 1 ] || continue
        case $line in
          @*) group "${line#@}" ;;
          *'['*) name=${line%% *}; case $line in *"[$arch]") echo "$name" ;; esac ;;
          *) echo "$line" ;;
        esac ;;
    esac
  done <"$list"
  if [ $found = 0 ]; then
    echo "setup: deploy/packages.txt has no group [$want]" >&2
    return 1
  fi
}

listing=0
if [ "${1:-}" = --list ]; then listing=1; shift; fi
if [ $# = 0 ]; then
  echo "usage: scripts/setup.sh [--list] GROUP...; groups: $(sed -n 's/^\[\(.*\)\].*/\1/p' "$list" | tr '\n' ' ')" >&2
  exit 2
fi
wanted=
for name in "$@"; do wanted+="$(group "$name")"$'\n'; done
wanted=$(printf '%s' "$wanted" | sort -u)
if [ $listing = 1 ]; then printf '%s\n' "$wanted"; exit 0; fi

# A package also counts if another provides it: some builds of nodejs bring npm along, and refuse Debian's.
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}, ${Provides}\n' 2>/dev/null |
  sed -n 's/^installed //p' | tr -d ' ' | tr ',' '\n' | sed 's/(.*//')
missing=() optional=()
while read -r package; do
  [ -n "$package" ] || continue
  grep -qxF -- "${package%\?}" <<<"$installed" && continue
  case $package in
    *\?) optional+=("${package%\?}") ;;
    *) missing+=("$package") ;;
  esac
done <<<"$wanted"
# Optional packages never start an installation of their own outside CI: a person would wonder what it is doing.
if [ ${#missing[@]} = 0 ] && { [ ${#optional[@]} = 0 ] || [ "${CI:-}" != true ]; }; then exit 0; fi

as_root=()
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null; then
    [ ${#missing[@]} = 0 ] && exit 0
    echo "setup: missing Debian packages: ${missing[*]}" >&2
    echo "setup: I am neither root nor is sudo here. As root: apt-get install -y ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes apt-get -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 -qq "$@"; }
# Those of the arguments that apt could install. Asked once for all: without root each question reads all lists again.
offered() { apt-cache policy "$@" 2>/dev/null | awk '/^[^ ]/ { name = $1 } /Candidate: [^(]/ { sub(":$", "", name); print name }'; }

fresh=0
refresh() { if [ $fresh = 0 ]; then apt update; fresh=1; fi; }
if [ "$(offered "${missing[@]}" | wc -l)" -lt ${#missing[@]} ]; then refresh; fi
if [ ${#optional[@]} -gt 0 ]; then
  while read -r package; do missing+=("$package"); done < <(offered "${optional[@]}")
fi
[ ${#missing[@]} = 0 ] && exit 0
echo "setup: installing ${missing[*]}"
# Lists that are old name packages that are gone: then once more, with new ones.
apt install -y --no-install-recommends "${missing[@]}" >/dev/null || {
  refresh
  apt install -y --no-install-recommends "${missing[@]}" >/dev/null
}
