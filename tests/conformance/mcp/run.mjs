// SPDX-License-Identifier: Apache-2.0
//
// Starts the fixtures server and runs the official suite against it, once for each era. The suite sends no credential and the
// gateway demands one, so the requests go through a proxy that adds it and changes nothing else.
//
//   node run.mjs SERVER FIXTURES EXPECTED_FAILURES
import { spawn } from 'node:child_process';
import http from 'node:http';

const [program, fixtures, expected] = process.argv.slice(2);
const server = spawn(program, [fixtures], { stdio: ['ignore', 'pipe', 'inherit'] });
const port = await new Promise((resolve, reject) => {
  server.stdout.once('data', (line) => resolve(Number(line)));
  server.once('exit', () => reject(new Error(`${program} ended before it listened`)));
});

const proxy = http.createServer((request, response) => {
  const headers = request.rawHeaders.concat('Authorization', 'Bearer agent-key');
  const onward = http.request(
    { host: '127.0.0.1', port, method: request.method, path: request.url, headers, setHost: false },
    (answer) => {
      response.writeHead(answer.statusCode, answer.rawHeaders);
      answer.pipe(response);
    },
  );
  onward.on('error', () => response.destroy());
  response.on('close', () => onward.destroy());
  request.pipe(onward);
});
await new Promise((resolve) => proxy.listen(0, '127.0.0.1', resolve));

let failed = false;
for (const version of ['2025-11-25', '2026-07-28']) {
  const suite = spawn(
    process.execPath,
    ['node_modules/@modelcontextprotocol/conformance/dist/index.js', 'server', '--suite', 'all', '--spec-version', version,
      '--url', `http://localhost:${proxy.address().port}/mcp`, '--expected-failures', expected.replace('VERSION', version)],
    { stdio: 'inherit' },
  );
  const status = await new Promise((resolve) => suite.once('exit', resolve));
  console.log(`MCP ${version}: ${status === 0 ? 'as expected' : 'not as expected'}`);
  failed ||= status !== 0;
}
server.kill();
process.exit(failed ? 1 : 0);
