// SPDX-License-Identifier: Apache-2.0
//
// For the tests of sdk/typescript: servers that misbehave.
import net from "node:net";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

export const source = process.env.COFFER_SOURCE ?? path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
export const load = (name) => import(pathToFileURL(path.join(source, "sdk/typescript/src", name)).href);

export const KEY = "coffer_0123456789abcdef_" + "5ec2e7".repeat(8);
export const CALL = "01a1ddf1-a908-7323-9069-8724c9a25bb1";
export const DONE = {
  call_id: CALL, outcome: "success", error: null, denials: [], log: null,
  result: { stdout: "4\n", stderr: "", truncated: false, exit: { code: 0, signal: null }, structured: null },
};

/** An HTTP answer as bytes. */
export function answer(status, body, ...fields) {
  const data = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
  const head = [`HTTP/1.1 ${status} X`, ...fields, `Content-Length: ${data.length}`, "", ""].join("\r\n");
  return Buffer.concat([Buffer.from(head), data]);
}

export const problem = (status, code, members = {}) =>
  answer(status, { type: "x", title: "x", status, detail: "no", code, ...members });

/**
 * A server on 127.0.0.1 that answers the n-th request with the n-th of `answers`, the last one again and again. An answer is
 * bytes, or a function of the connection. `requests` holds what was asked, as text.
 */
export async function serve(...answers) {
  const requests = [];
  const connections = new Set();
  const server = net.createServer((connection) => {
    connections.add(connection);
    connection.on("error", () => {});
    let data = "", answered = false;
    connection.on("data", (piece) => {
      data += piece.toString("latin1");
      const end = data.indexOf("\r\n\r\n");
      const size = Number(/^content-length: *(\d+)/im.exec(data.slice(0, end))?.[1] ?? 0);
      if (answered || end < 0 || data.length < end + 4 + size) return;
      answered = true;
      requests.push(data);
      const said = answers[Math.min(requests.length, answers.length) - 1];
      if (typeof said === "function") said(connection);
      else connection.end(said);
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => {
    for (const connection of connections) connection.destroy();
    server.close();
  };
  return { url: `http://127.0.0.1:${server.address().port}`, requests, close };
}

export const header = (request, name) => new RegExp(`^${name}: *(.*)\\r$`, "im").exec(request)?.[1] ?? null;

/** Sends `piece` again and again until the client has gone. */
export const endless = (head, piece) => (connection) => {
  connection.write(head);
  const more = () => {
    while (!connection.destroyed && connection.write(piece));
  };
  connection.on("drain", more);
  more();
};
