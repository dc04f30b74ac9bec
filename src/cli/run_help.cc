// SPDX-License-Identifier: Apache-2.0
#include "cli/run_flags.h"

namespace coffer::cli {

std::string_view RunHelp() {
  return R"(Run a script or a command where its worst case is small.

Usage:
  coffer run [flags] FILE [ARG...]    bring in that one file, read-only, and run it with its interpreter
  coffer run [flags] -                the same with a script from stdin
  coffer run [flags] -- CMD ARG...    run a command of this host

Without flags: no network, no host files but /usr (read-only), /workspace (100 MiB, in memory) as working directory,
10 s of CPU, 30 s, 256 MiB, 32 processes, 100 open files, 1 MiB of output. The current directory is not visible.

For a project:
  --project DIR       DIR at its own path, writable, as working directory, with the programs of this host. What the host
                      runs later by itself (.git/hooks, .git/config, .vscode, .idea, .envrc, ...) is read-only. Ones
                      that the command makes are set aside at the end. HOME is private. 1 h of CPU, 30 min, 2 GiB,
                      512 processes, 4096 open files, 4 GiB of disk, 16 MiB of output
  --keep-planted      report planted files and leave them in place
  --cache NAME...     pip, npm, ccache: kept for this project between calls (`coffer cache list`)

What it may see:
  --ro PATH[:AT]      a host file or directory, read-only (repeat for more)
  --rw PATH[:AT]      a host directory it may change; what it writes belongs to the directory's owner
  --dangerously-rw PATH[:AT]   the same below the system's directories (/etc, /usr, ...): it can change the host
  --in FILE...        copies of files, in /in and linked from /workspace
  --out DIR           an output directory, at /out; made if missing
  --runtime NAME...   only the files of these runtimes instead of all of /usr: base, python3, node, bash, git, gcc, ...
                      (`coffer runtimes` lists them; the default is host-usr)
  --no-exec           nothing in /workspace, /tmp and mounts can be executed
  --ro-overlay        /usr and --ro directories through an overlay: locks taken inside hold up no program of the host, its
                      sockets and fifos are out of reach, datagrams over UNIX sockets work; what the host changes during
                      the call may not be seen
  --env K=V           a variable; nothing of your own environment is passed on
  --cwd PATH          working directory inside (/workspace)
  --uid N             user id inside (1000)
  --tty               a terminal of its own
  --publish PORT      127.0.0.1:PORT of this host leads to PORT inside, for a browser (9000:8080: port 9000 here; 0:8080: any
                      that is free). The way leads inwards only; needs the container level

What it may reach (without --allow: nothing; needs cofferd beside coffer, and the container level):
  --allow HOST[:PORT] TLS to this host (port 443), passed through unread: the name in the handshake must be HOST. *.HOST is
                      its subdomains, **.HOST both. Repeat for more
  --allow 'METHOD https://HOST[:PORT]/PATH'   only such requests: the connection is read with a certificate made for this
                      call, that programs inside trust. PATH may end in /**; METHOD may be GET,HEAD; without METHOD all
  --allow http://HOST[:PORT]   the same without TLS: everyone on the way can read and change it
  --allow tcp://HOST:PORT      any protocol, such as SSH
  --hold                       ask on the terminal for what no --allow covers: the connection waits for the answer
  --hold-time TIME             how long it waits; then the answer is no (2m)
  --resolve NAME=ADDRESS       instead of asking DNS
  --upstream-ca FILE           certificates (PEM) that servers may be signed with, beside those that this host trusts
  --upstream-proxy URL         dial through this HTTP proxy (http://HOST:PORT), which then looks the names up
  --never-send FILE            values that no request may hold, one on a line: where requests are looked into, one that
                               holds a value, plain or encoded, is refused before the value has left
  --dangerously-allow-address CIDR   addresses of this host or of private networks that a name may lead to

Tools that its code may call (needs the container level; the run and each call are recorded, see --state):
  --tools NAME,...    declared tools (`coffer tools list`), by `coffer call NAME JSON` and as MCP on the UNIX socket that
                      $COFFER_TOOLS_SOCKET names. A call has at most the files, time and memory of this run
  --tools-dir DIR     manifests of your own (default: $COFFER_TOOLS, or tools in ~/.config/coffer)
  --tool-calls N      how many calls it may make (100)

What it may use:
  --cpu TIME          CPU time of the whole tree (10s)        --wall TIME         elapsed time (30s)
  --memory SIZE       with tmpfs, without swap (256MiB)       --processes N       processes and threads (32)
  --open-files N      per process (100)                       --disk SIZE         in each writable place (100MiB)
  --tmp SIZE          size of /tmp (16MiB)                    --io SIZE           block device bytes (1GiB)
  --output SIZE       stdout and stderr together (1MiB)       --fail-on-cut       exit 122 if it was cut

How it is confined:
  --level LEVEL       process, container or auto (auto)
  --floor LAYER...    refuse to run without these layers (see `coffer doctor`)
  --seccomp PROFILE   strict, default, compat, or an OCI/Docker profile in JSON, which can only narrow compat

  --session ID        /workspace is that of a session (`coffer sessions new`): what is in it stays for its next call. Such
                      a call is recorded in the state directory
  --profile NAME      flags from [profile.NAME] of ~/.config/coffer/run.toml; those given here count first

What you are told:
  --reason TEXT       what it is for, in one line: in the receipt, for people; it changes nothing
  --receipt FILE      write the receipt ("-" is stderr); not where the call may write
  --state DIR         record it in this state directory: the decision before it runs, a sealed receipt after it; what
                      cannot be recorded does not run (default: $COFFER_STATE; neither: it is not recorded)
  --trace             print each setup step with its time, and every refused system call
  --quiet             no notes of coffer's own on stderr; warnings and errors stay

Exit status: the command's own; 120 refused, 122 a limit was breached, 125 Cofferdam failed, 126 the command cannot be
run, 127 it does not exist, 128+N it died of signal N.
)";
}

}  // namespace coffer::cli
