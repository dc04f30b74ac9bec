#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs real programs outside and inside a boundary and compares: scripts/compat.sh [--short] [--only REGEX] [--write]
#
# The list is tests/compat/programs.list. As root each entry runs as root and as a user without a name; as a user, as that
# user. Each runs without a mount (in /workspace) and with one (in a directory of the host). --short is what CI runs:
# the entries marked short. --write puts the table into docs/COMPATIBILITY.md. It fails if an entry that works outside
# does not work inside. Suites of other projects (CPython's, Perl's) are lanes of their own beside this list.
#
# npm:PACKAGE among an entry's needs is a package that tests/compat/npm pins (no lock file: npm ci wants every optional
# binary of every platform to be there). They are installed once below build/compat; the script finds them by walking up from its directory, as node does, and in $NODE_MODULES. Inside they are mounted
# read-only at /node_modules. built:PACKAGE is one with native code, which is compiled there against this node's headers.
set -euo pipefail
cd "$(dirname "$0")/.."
coffer=$(realpath "${COFFER:-build/coffer}")
list=tests/compat/programs.list
wanted=. only=. write=no
while [ $# -gt 0 ]; do
  case $1 in
    --short) wanted='^short$' ;;
    --only) only=$2; shift ;;
    --write) write=yes ;;
    *) sed -n 's/^# \{0,1\}//; 4,13p' "$0" >&2; exit 2 ;;
  esac
  shift
done
# What a project gets: minutes, not seconds.
limits=(--memory 1GiB --wall 120s --cpu 100s --processes 256 --open-files 1024 --tmp 256MiB --disk 512MiB --quiet)
user=48213
system_path=/usr/local/bin:/usr/bin:/bin
work=$(mktemp -d /var/tmp/coffer-compat.XXXXXX)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
cp "$coffer" "$work/coffer"
coffer=$work/coffer
# shellcheck disable=SC2034  # run() takes as_user and as_root by name
as_user=(setpriv "--reuid=$user" "--regid=$user" --clear-groups env -i "PATH=$system_path" "HOME=$work/home-user")
if [ "$(id -u)" = 0 ]; then
  who=(root user)
  install -d -o $user -g $user "$work/home-user"
else
  who=(user)
  # shellcheck disable=SC2034
  as_user=(env -i "PATH=$system_path" "HOME=$work/home-user")
  mkdir "$work/home-user"
fi
# shellcheck disable=SC2034
as_root=(env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "HOME=$work/home-root")
mkdir "$work/home-root"

# The pinned npm packages, once for each package.json; $modules stays empty if they cannot be had. No links to their
# programs: npm would put them on PATH, a node among them.
modules=
place=$(realpath -m "${COMPAT_NPM:-build/compat/npm}")
install_modules() {
  if ! cmp -s tests/compat/npm/package.json "$place/installed.json"; then
    mkdir -p "$place"
    cp tests/compat/npm/package.json "$place/"
    (cd "$place" && timeout 600 npm install --ignore-scripts --no-bin-links --no-audit --no-fund) >"$place/npm.log" 2>&1 || return 0
    cp "$place/package.json" "$place/installed.json"
  fi
  modules=$work/node_modules
  copy_modules
}
copy_modules() {
  rm -rf "$modules"
  cp -r "$place/node_modules" "$modules"
  chmod -R go+rX "$modules"
}

# Where the headers of the node that the entries use are: beside it, or in Debian's libnode-dev, which npm brings.
headers=
for directory in /usr/include/nodejs /usr/local /usr; do
  if [ -e "$directory/common.gypi" ] || [ -e "$directory/include/node/common.gypi" ]; then headers=$directory; fi
done

# Compiles the native code of a package that is installed. better-sqlite3 takes two minutes of a slow processor.
build_module() {
  [ -d "$place/node_modules/$1" ] && [ -n "$headers" ] || return 0
  if [ ! -e "$place/node_modules/$1/build/Release" ]; then
    (cd "$place" && PATH=$system_path npm_config_nodedir=$headers npm_config_build_from_source=true timeout 900 npm rebuild "$1") >"$place/build.log" 2>&1 || return 0
    copy_modules
  fi
}

# run WHO DIRECTORY COMMAND...: stdout to $out, stderr to $err
run() {
  local -n prefix=as_$1
  local directory=$2
  shift 2
  (cd "$directory" && timeout 150 "${prefix[@]}" "$@") >"$out" 2>"$err" </dev/null
}

# The end of $err as a part of a table's row: no control character, such as ssh's carriage return, and no bar.
last_line() {
  tail -n 1 "$err" | tr -s '[:cntrl:]|' ' ' | cut -c1-"$1" | sed 's/ *$//'
}

fresh() {  # a directory of WHO's own
  local directory
  directory=$(mktemp -d "$work/d.XXXXXX")
  chmod 755 "$directory"
  if [ "$1" = user ] && [ "$(id -u)" = 0 ]; then chown $user:$user "$directory"; fi
  echo "$directory"
}

passed=0 failed=0 excepted=0 missing=0
declare -A known=() flagged=() always=() around=()
rows=()
out=$work/out err=$work/err
while IFS= read -r line || [ -n "$line" ]; do
  case $line in
    '' | '#'*) continue ;;
    '+ '*) line=${line#+ }; flagged[${line%% | *}]=${line#* | }; continue ;;
    '= '*) line=${line#= }; always[${line%% | *}]=${line#* | }; continue ;;
    '> '*) around[${line#> }]=yes; continue ;;
    '! '*) line=${line#! }; known[${line%% | *}]=${line#* | }; continue ;;
  esac
  # A line without the three bars goes on with the script before it.
  if [[ ! $line =~ ^[^|]+\ \|\ (short|full)\ \|\ [^|]+\ \|\  ]]; then
    scripts[-1]+=$'\n'$line
    continue
  fi
  names+=("${line%% | *}"); line=${line#* | }
  kinds+=("${line%% | *}"); line=${line#* | }
  needs+=("${line%% | *}"); scripts+=("${line#* | }")
done <"$list"

for i in "${!names[@]}"; do
  name=${names[i]} script=${scripts[i]}
  [[ ${kinds[i]} =~ $wanted && $name =~ $only ]] || continue
  lacking=
  npm=no
  for program in ${needs[i]}; do
    case $program in
      npm:* | built:*)
        npm=yes
        [ -n "$modules" ] || install_modules
        if [[ $program = built:* ]]; then
          build_module "${program#built:}"
          compgen -G "$modules/${program#built:}/build/Release/*.node" >/dev/null || lacking+=" $program"
        else
          compgen -G "$modules/${program#npm:}" >/dev/null || lacking+=" $program"
        fi ;;
      node-headers) [ -n "$headers" ] || lacking+=" $program" ;;
      /*) [ -e "$program" ] || lacking+=" $program" ;;
      *) PATH=$system_path command -v "$program" >/dev/null || lacking+=" $program" ;;
    esac
  done
  if [ -n "$lacking" ]; then
    missing=$((missing + 1))
    echo "missing  $name:$lacking"
    rows+=("| $name | not installed:$lacking | |")
    continue
  fi
  cells=()
  notes="" expected="" except=""
  if [ -n "${known[$name]:-}" ]; then except=${known[$name]%% | *}; fi
  for one in "${who[@]}"; do
    variables=("NODE_MODULES=$modules" "NODE_HEADERS=$headers")
    if ! run "$one" "$(fresh "$one")" env "${variables[@]}" sh -ec "$script" "$script"; then
      notes+="$one, outside: $(last_line 100); "
      # What it prints for the other one outside is the measure.
      if [ -z "$expected" ]; then cells+=("fails outside"); failed=$((failed + 1)); continue; fi
    else
      expected=$(cat "$out")
    fi
    for mount in without with; do
      directory=$(fresh "$one")
      # shellcheck disable=SC2206  # words of flags
      flags=("${limits[@]}" ${always[$name]:-})
      if [ $mount = with ]; then
        flags+=(--rw "$directory:/data" --cwd /data)
      else
        # shellcheck disable=SC2206  # words of flags
        flags+=(${flagged[$name]:-})
      fi
      if [ $npm = yes ]; then flags+=(--ro "$modules:/node_modules" --env NODE_MODULES=/node_modules); fi
      if [ -n "$headers" ]; then flags+=(--env "NODE_HEADERS=$headers"); fi
      inside=("$coffer" run "${flags[@]}" -- sh -ec "$script" "$script")
      if [ -n "${around[$name]:-}" ]; then
        inside=(env "${variables[@]}" "RUN=$coffer run ${flags[*]}" sh -ec "$script" "$script")
      fi
      if run "$one" "$directory" "${inside[@]}" && [ "$(cat "$out")" = "$expected" ]; then
        passed=$((passed + 1)); cells+=("yes")
      elif [ "$except" = "$mount a mount" ]; then
        excepted=$((excepted + 1)); cells+=("known")
      else
        failed=$((failed + 1)); cells+=("**no**")
        notes+="$one, $mount a mount: $(last_line 120); "
      fi
    done
  done
  needed=${always[$name]:-}${flagged[$name]:-}
  needed=${needed:+ with \`$needed\`}
  # "yes" once if all are.
  if [ "$(printf '%s\n' "${cells[@]}" | sort -u)" = yes ]; then
    echo "ok       $name"; rows+=("| $name | yes$needed | ${notes//$work/DIR} |")
  elif ! printf '%s\n' "${cells[@]}" | grep -qxv -e yes -e known; then
    echo "known    $name: not $except"; rows+=("| $name |$needed${needed:+,} not $except | ${known[$name]#* | } |")
  else
    echo "FAIL     $name (${cells[*]}) $notes"; rows+=("| $name | ${cells[*]} | ${notes//$work/DIR} |")
  fi
done
total=$((passed + failed))
echo "$passed of $total runs pass; $excepted more fail for a reason that the list names; $missing programs are not installed"
if [ $write = yes ]; then
  { sed '/^<!-- programs -->$/q' docs/COMPATIBILITY.md
    echo
    echo "$passed of $total runs pass, and $excepted more fail for a reason that the table names; $missing entries need a program that"
    # shellcheck disable=SC1091,SC2153  # of the host
    echo "was not installed. Host: $(. /etc/os-release && echo "$NAME $VERSION_ID"), Linux $(uname -r | cut -d. -f1,2), $(uname -m). Each program runs as ${who[0]}${who[1]:+ and as an ordinary user}, each time without a mount and"
    echo "with one. A cell with several words has one word for each of these runs: ${who[0]} without a mount, ${who[0]} with one${who[1]:+, user without, user with}."
    echo
    echo "| program | works | why not |"
    echo "|---|---|---|"
    printf '%s\n' "${rows[@]}"
    echo
    sed -n '/^<!-- end of programs -->$/,$p' docs/COMPATIBILITY.md; } >"$work/new.md"
  cat "$work/new.md" >docs/COMPATIBILITY.md
fi
[ $failed = 0 ]
