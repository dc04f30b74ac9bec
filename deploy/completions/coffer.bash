# SPDX-License-Identifier: Apache-2.0
# bash completion for coffer(1)

_coffer() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]} i
  local layers="userns mountns pidns netns ipcns utsns cgroupns private-root private-proc uid capabilities
    no-new-privs seccomp landlock rlimits disk-quota cgroup-memory cgroup-pids cgroup-cpu cgroup-io"
  COMPREPLY=()
  if [ "$COMP_CWORD" = 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "run shell cache call mcp tools audit serve key sessions access switch doctor runtimes help --help --version" -- "$cur")
    return
  fi
  # After -- the rest is the command's own.
  for ((i = 2; i < COMP_CWORD; i++)); do
    if [ "${COMP_WORDS[i]}" = -- ]; then
      mapfile -t COMPREPLY < <(compgen -c -f -- "$cur")
      return
    fi
  done
  case $verb in
    doctor) mapfile -t COMPREPLY < <(compgen -W "--json --sweep --help" -- "$cur") ;;
    runtimes) mapfile -t COMPREPLY < <(compgen -W "--json --help" -- "$cur") ;;
    help) mapfile -t COMPREPLY < <(compgen -W "manifest config run shell cache call mcp tools audit serve key sessions access switch
      doctor runtimes" -- "$cur") ;;
    cache)
      case $prev in
        --project) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
        *) mapfile -t COMPREPLY < <(compgen -W "list clear pip npm ccache --project --all --json --help" -- "$cur") ;;
      esac ;;
    mcp)
      mapfile -t COMPREPLY < <(compgen -W "wrap review install --project --manifest --print --yes --agent --session --config --state --tools --name --timeout --url --header-file --token-env --accept --help" -- "$cur")
      ;;
    call)
      case $prev in
        --state | --tools) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
        --receipt | --config) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
        --args | --session | --idempotency-key | --key | --reason) ;;
        *)
          if [[ $cur == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--args --session --idempotency-key --key --dry-run --fail-on-cut --reason --traceparent --receipt --config --json --state --tools
              --help" -- "$cur")
          elif [ "$COMP_CWORD" = 2 ]; then
            mapfile -t COMPREPLY < <(compgen -W "$(coffer tools list 2>/dev/null | sed '1d;s/ .*//')" -- "$cur")
          fi ;;
      esac ;;
    tools)
      case $prev in
        --state | --tools) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
        --config) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
        --reason) ;;
        show | disable | enable) mapfile -t COMPREPLY < <(compgen -W "$(coffer tools list 2>/dev/null | sed '1d;s/ .*//')" -- "$cur") ;;
        *)
          if [ "$COMP_CWORD" = 2 ]; then
            mapfile -t COMPREPLY < <(compgen -W "list show check new disable enable --help" -- "$cur")
          elif [[ $cur == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--json --reason --config --state --tools --help" -- "$cur")
          elif [ "${COMP_WORDS[2]}" = check ]; then
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
          fi ;;
      esac ;;
    audit)
      case $prev in
        --state | --log) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
        --key | --checkpoint | --out | verify-receipt) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
        --format) mapfile -t COMPREPLY < <(compgen -W "jsonl ocsf otlp" -- "$cur") ;;
        --outcome) mapfile -t COMPREPLY < <(compgen -W "success error denied terminated unknown" -- "$cur") ;;
        *)
          if [ "$COMP_CWORD" = 2 ]; then
            mapfile -t COMPREPLY < <(compgen -W "list show object files fetch chain tail verify verify-receipt checkpoint key
              export prune --help" -- "$cur")
          else
            mapfile -t COMPREPLY < <(compgen -W "--tenant --tool --agent --session --trace --outcome --class --denied --probed
              --approval --since --until --limit --cursor --log --key --checkpoint --log-only --last --format
              --older-than --manifest --envelope --out --json --state --help" -- "$cur")
          fi ;;
      esac ;;
    key)
      case $prev in
        --role) mapfile -t COMPREPLY < <(compgen -W "agent approver operator auditor" -- "$cur") ;;
        --state) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
        --expires) mapfile -t COMPREPLY < <(compgen -W "1h 24h 720h" -- "$cur") ;;
        --tenant | --agent) ;;
        *)
          if [ "$COMP_CWORD" = 2 ]; then
            mapfile -t COMPREPLY < <(compgen -W "new list revoke --help" -- "$cur")
          else
            mapfile -t COMPREPLY < <(compgen -W "--role --tenant --agent --expires --all-tenants --keep-running --with-keys --json --state --help" -- "$cur")
          fi ;;
      esac ;;
    sessions)
      case $prev in
        --state) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
        --tenant) ;;
        *)
          if [ "$COMP_CWORD" = 2 ]; then
            mapfile -t COMPREPLY < <(compgen -W "new list files extend end start processes log signal stop --help" -- "$cur")
          else
            mapfile -t COMPREPLY < <(compgen -W "--tenant --all --lifetime --size --label --port --follow --config --json --state --help" -- "$cur")
          fi ;;
      esac ;;
    access)
      case $prev in
        --state) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
        --socket) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
        --minutes) ;;
        *)
          if [ "$COMP_CWORD" = 2 ]; then
            mapfile -t COMPREPLY < <(compgen -W "list grant deny --help" -- "$cur")
          else
            mapfile -t COMPREPLY < <(compgen -W "--minutes --json --socket --state --help" -- "$cur")
          fi ;;
      esac ;;
    switch)
      case $prev in
        --state) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
        --tenant | --reason) ;;
        *)
          if [ "$COMP_CWORD" = 2 ]; then
            mapfile -t COMPREPLY < <(compgen -W "list on off --help" -- "$cur")
          elif [ "$COMP_CWORD" = 3 ]; then
            mapfile -t COMPREPLY < <(compgen -W "tool agent session tenant breaker" -- "$cur")
          else
            mapfile -t COMPREPLY < <(compgen -W "--tenant --reason --json --state --help" -- "$cur")
          fi ;;
      esac ;;
    serve)
      case $prev in
        --state | --tools) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
        --socket | --tls-cert | --tls-key | --jwks) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
        --listen | --health-listen) mapfile -t COMPREPLY < <(compgen -W "127.0.0.1:7433 127.0.0.1:0" -- "$cur") ;;
        --jwt-issuer | --jwt-audience | --name) ;;
        *)
          mapfile -t COMPREPLY < <(compgen -W "--config --listen --health-listen --socket --tls-cert --tls-key --jwks --jwt-issuer --jwt-audience
            --name --allow-dangerous --json --state --tools --help" -- "$cur") ;;
      esac ;;
    run | shell)
      case $prev in
        --project) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
        --cache) mapfile -t COMPREPLY < <(compgen -W "pip npm ccache" -- "$cur") ;;
        --profile) ;;
        --level) mapfile -t COMPREPLY < <(compgen -W "auto container process" -- "$cur") ;;
        --floor) mapfile -t COMPREPLY < <(compgen -W "$layers" -- "$cur") ;;
        --runtime) mapfile -t COMPREPLY < <(compgen -W "python3 node perl bash sh busybox host-usr" -- "$cur") ;;
        --seccomp) mapfile -t COMPREPLY < <(compgen -W "strict default compat" -f -- "$cur") ;;
        --ro | --rw | --dangerously-rw | --in | --receipt | --upstream-ca | --never-send) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
        --tools) mapfile -t COMPREPLY < <(compgen -W "$(coffer tools list 2>/dev/null | sed '1d;s/ .*//')" -- "$cur") ;;
        --out | --cwd | --tools-dir) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
        --cpu | --wall) mapfile -t COMPREPLY < <(compgen -W "1s 10s 30s 1m" -- "$cur") ;;
        --memory | --disk | --io | --output | --tmp) mapfile -t COMPREPLY < <(compgen -W "1MiB 64MiB 256MiB 1GiB" -- "$cur") ;;
        --env | --uid | --publish | --allow | --resolve | --hold-time | --upstream-proxy | --dangerously-allow-address | --tool-calls | --processes | --open-files) ;;
        *)
          if [[ $cur == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "--level --floor --runtime --seccomp --publish --allow --hold --hold-time --upstream-proxy --resolve --upstream-ca --never-send --dangerously-allow-address --tools --tools-dir --tool-calls --uid --ro --rw --dangerously-rw --in --out --tmp
              --project --no-project --keep-planted --cache --profile --fail-on-cut --session --reason --cwd --cpu --wall --memory --processes --open-files --disk --io --output --env --tty --no-exec --ro-overlay --receipt --state
              --trace --quiet --help --" -- "$cur")
          else
            mapfile -t COMPREPLY < <(compgen -f -- "$cur")
          fi ;;
      esac ;;
  esac
}
complete -o filenames -F _coffer coffer
