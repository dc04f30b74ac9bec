// SPDX-License-Identifier: Apache-2.0
//
// A private daemon for one program: started when it is needed, gone when the program is.
//
// A small shell process stands between the two. It holds the reading end of a pipe whose writing end only this program has.
// The kernel closes that end however the program ends, also by SIGKILL; then the shell ends the daemon and removes its state.
// The daemon is in a session of its own, so that Ctrl-C reaches the program and not the daemon under it.
//
// The client talks to the daemon over the unix socket in the state directory, which only this user can enter. It needs no
// key. The daemon does not keep the program's event loop alive: a program that forgets close() ends, and the daemon with it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { LocalDaemonError } from "./errors.js";

/** @typedef {import("node:child_process").ChildProcessWithoutNullStreams} Child */

const READY_MS = 60_000;
const END_MS = 20_000;
// $1: what to remove at the end, or nothing. $2: seconds from SIGTERM to SIGKILL. The rest: the daemon's command.
const KEEPER = `
remove=$1; grace=$2; shift 2
exec 3<&0
"$@" </dev/null 3<&- & daemon=$!
( read -r _ <&3; kill -TERM $daemon
  while [ "$grace" -gt 0 ]; do sleep 1; grace=$((grace - 1)); done; kill -KILL $daemon ) >/dev/null 2>&1 & watch=$!
exec 3<&- >/dev/null 2>&1
wait $daemon
kill $watch
[ -n "$remove" ] || exit 0
for _ in 1 2 3 4 5 6 7 8 9; do rm -rf -- "$remove" && exit 0; sleep 1; done
`;

/** @param {string} file */
function canRun(file) {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}

/** The program: COFFER_BIN, or `coffer` on PATH. Relative places of PATH do not count: what lies there is not ours. */
export function findCoffer() {
  const named = process.env["COFFER_BIN"];
  if (named) {
    if (!canRun(named)) throw new LocalDaemonError("COFFER_BIN does not name a program that can be run");
    return path.resolve(named);
  }
  for (const place of (process.env["PATH"] ?? "/usr/bin:/bin").split(":")) {
    if (place.startsWith("/") && canRun(path.join(place, "coffer"))) return path.join(place, "coffer");
  }
  throw new LocalDaemonError("there is no program coffer on PATH: install it, or set COFFER_BIN to where it is");
}

/** Where a daemon of this user listens if one runs. @returns {string | null} */
export function defaultSocket() {
  const home = process.env["XDG_STATE_HOME"] || path.join(os.homedir(), ".local", "state");
  const state = process.env["COFFER_STATE"] || (process.geteuid?.() === 0 ? "/var/lib/coffer" : path.join(home, "coffer"));
  if (!process.env["COFFER_STATE"] && !state.startsWith("/")) return null; // the current directory is not ours
  return path.join(path.resolve(state), "coffer.sock");
}

/** Whether a daemon listens there. @param {string} file @returns {Promise<boolean>} */
export function isListening(file) {
  return new Promise((resolve) => {
    const probe = net.connect(file);
    probe.setTimeout(5000, () => probe.destroy());
    probe.on("connect", () => {
      resolve(true);
      probe.destroy();
    });
    probe.on("error", () => resolve(false));
    probe.on("close", () => resolve(false));
  });
}

/** A directory for temporary files; a unix socket's path has at most 107 bytes. @param {string} place */
const short = (place) => (Buffer.byteLength(place) <= 80 ? place : "/tmp");

/** A daemon that this object owns. `url` is where it listens. */
export class LocalDaemon {
  /** @type {Child} */ #child;
  /** @type {string | null} */ #made;

  /** @param {Child} child @param {string | null} made */
  constructor(child, made) {
    this.#child = child;
    this.#made = made;
    this.url = "";
  }

  /** @param {{ state?: string, tools?: string[] }} options @returns {Promise<LocalDaemon>} */
  static async start(options) {
    const coffer = findCoffer();
    const made = options.state === undefined ? fs.mkdtempSync(path.join(short(os.tmpdir()), "coffer-")) : null;
    const state = made ?? path.resolve(/** @type {string} */ (options.state));
    const words = [coffer, "serve", "--state", state, "--listen", "127.0.0.1:0", "--json"];
    for (const place of options.tools ?? []) words.push("--tools", path.resolve(place));
    const child = spawn("/bin/sh", ["-c", KEEPER, "coffer-local", made ?? "", made === null ? "15" : "3", ...words],
      { detached: true, stdio: ["pipe", "pipe", "pipe"] });
    child.stdin.on("error", () => {}); // nothing is ever written
    const daemon = new LocalDaemon(child, made);
    try {
      daemon.url = `unix:${await ready(child)}`;
    } catch (error) {
      await daemon.close();
      throw error;
    }
    child.unref();
    for (const stream of [child.stdin, child.stderr]) /** @type {net.Socket} */ (/** @type {unknown} */ (stream)).unref();
    return daemon;
  }

  /** Ends the daemon and waits for it. @returns {Promise<void>} */
  async close() {
    const child = this.#child;
    child.ref();
    child.stdin.destroy();
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      const pid = child.pid;
      const timer = setTimeout(() => process.kill(-pid, "SIGKILL"), END_MS);
      await once(child, "exit");
      clearTimeout(timer);
    }
    child.stderr.destroy();
    if (this.#made !== null) fs.rmSync(this.#made, { recursive: true, force: true });
  }
}

/**
 * Reads the one line that `coffer serve --json` prints. The key in it is not kept.
 * @param {Child} child @returns {Promise<string>}
 */
function ready(child) {
  return new Promise((resolve, reject) => {
    let line = "", said = "";
    /** @param {string} what */
    const fail = (what) => {
      clearTimeout(timer);
      reject(new LocalDaemonError(what + (said.trim() ? `: ${said.trim()}` : "")));
    };
    const timer = setTimeout(() => fail("the daemon did not become ready"), READY_MS);
    child.on("error", (error) => fail(`cannot start /bin/sh: ${error.message}`));
    child.stderr.setEncoding("utf8").on("data", (piece) => (said = (said + piece).slice(0, 4096)));
    child.on("close", () => fail("the daemon ended before it was ready"));
    child.stdout.setEncoding("utf8").on("data", (piece) => {
      line += piece;
      if (line.length > 65536) fail("the daemon said too much");
      if (!line.endsWith("\n")) return;
      clearTimeout(timer);
      child.stdout.destroy();
      try {
        const socket = JSON.parse(line).socket;
        if (typeof socket !== "string") throw new TypeError();
        resolve(socket);
      } catch {
        fail("the daemon did not say where it listens: is this program coffer?");
      }
    });
  });
}
