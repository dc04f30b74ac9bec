// SPDX-License-Identifier: Apache-2.0
//
// `coffer mcp` with the official clients, and the reference servers in `coffer mcp wrap`. One line for each step; the first that
// fails ends the run.
//
//   node run.mjs COFFER
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

import { Client as NewClient } from '@modelcontextprotocol/client';
import { StdioClientTransport as NewStdio } from '@modelcontextprotocol/client/stdio';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as OldStdio } from '@modelcontextprotocol/sdk/client/stdio.js';

const coffer = resolve(process.argv[2]);
const packages = resolve('node_modules');
const scratch = mkdtempSync(join(tmpdir(), 'coffer-mcp-'));
const project = join(scratch, 'project');
mkdirSync(project);
writeFileSync(join(project, 'main.py'), 'print("helo")\n');
const env = { PATH: process.env.PATH, HOME: scratch, COFFER_STATE: join(scratch, 'state') };
const about = { name: 'coffer-tests', version: '1' };

const step = async (name, work) => {
  const began = Date.now();
  await work();
  console.log(`ok  ${name} (${Date.now() - began} ms)`);
};

const textOf = (result) => result.content.map((part) => part.text ?? '').join('');

// A client connected to `coffer ARGS`, for as long as `work` takes.
const withClient = async (makeClient, Stdio, args, work) => {
  const client = makeClient();
  await client.connect(new Stdio({ command: coffer, args, env, stderr: 'inherit' }));
  try {
    await work(client);
  } finally {
    await client.close();
  }
};

const firstDay = async (client) => {
  const names = (await client.listTools()).tools.map((tool) => tool.name);
  for (const name of ['python', 'node', 'shell', 'bash', 'read-file', 'write-file', 'edit-file', 'search-text',
    'start-process', 'read-process', 'stop-process']) {
    assert.ok(names.includes(name), `${name} is missing: ${names}`);
  }
  const call = (name, args) => client.callTool({ name, arguments: args });
  assert.equal(textOf(await call('python', { code: 'print(6 * 7)' })), '42\n');
  assert.equal((await call('write-file', { path: 'a/b.txt', content: 'one\n' })).isError, false);
  assert.equal((await call('edit-file', { path: 'a/b.txt', old_text: 'one', new_text: 'two' })).isError, false);
  assert.equal(textOf(await call('read-file', { path: 'a/b.txt' })), 'two\n');
  const failed = await call('bash', { command: 'exit 3' });
  assert.equal(failed.isError, true);
  assert.equal(failed.structuredContent.exit_code, 3);
  const started = await call('start-process', { command: 'echo began; exec sleep 600' });
  const process_id = started.structuredContent.processes[0].process_id;
  for (;;) {
    const read = await call('read-process', { process_id });
    if (read.structuredContent.output === 'began\n') break;
    assert.equal(read.structuredContent.processes[0].state, 'running');
  }
  assert.equal((await call('stop-process', { process_id })).isError, false);
};

const files = async (client) => {
  const { resources } = await client.listResources();
  const file = resources.find((one) => one.uri.endsWith('/a/b.txt'));
  assert.equal((await client.readResource({ uri: file.uri })).contents[0].text, 'two\n');
};

const old = () => new OldClient(about);
const fresh = (mode) => () => new NewClient(about, mode ? { versionNegotiation: { mode } } : {});
for (const [name, make, Stdio] of [
  ['client v1', old, OldStdio],
  ['client v2, legacy', fresh(), NewStdio],
  ['client v2, modern', fresh('auto'), NewStdio],
]) {
  await step(name, () => withClient(make, Stdio, ['mcp'], async (client) => {
    await firstDay(client);
    await files(client);
  }));
}

await step('a project', () => withClient(old, OldStdio, ['mcp', '--project', project], async (client) => {
  await firstDay(client);
  const edit = { path: 'main.py', old_text: 'helo', new_text: 'hello' };
  await client.callTool({ name: 'edit-file', arguments: edit });
  assert.equal(readFileSync(join(project, 'main.py'), 'utf8'), 'print("hello")\n');
}));

await step('64 calls at once', () => withClient(fresh('auto'), NewStdio, ['mcp'], async (client) => {
  const calls = Array.from({ length: 64 }, (_, i) =>
    client.callTool({ name: 'bash', arguments: { command: `echo ${i}` } }));
  (await Promise.all(calls)).forEach((result, i) => assert.equal(textOf(result), `${i}\n`));
}));

await step('Inspector', async () => {
  const inspector = join(packages, '@modelcontextprotocol/inspector/clients/launcher/build/index.js');
  const inspect = async (...words) => {
    const { stdout } = await promisify(execFile)(
      process.execPath, [inspector, '--cli', coffer, 'mcp', ...words], { env, maxBuffer: 1 << 24, timeout: 60_000 });
    return JSON.parse(stdout);
  };
  const { tools } = await inspect('--method', 'tools/list');
  assert.ok(tools.some((tool) => tool.name === 'edit-file'));
  const result = await inspect('--method', 'tools/call', '--tool-name', 'python', '--tool-arg', 'code=print(6 * 7)');
  assert.equal(textOf(result), '42\n');
});

const allowed = join(scratch, 'allowed');
mkdirSync(allowed);
writeFileSync(join(allowed, 'note.txt'), 'for the server\n');
writeFileSync(join(scratch, 'secret.txt'), 'not for the server\n');
const servers = [
  ['everything', [], [], async (call) => {
    assert.equal(textOf(await call('echo', { message: 'hello' })), 'Echo: hello');
    assert.equal((await call('echo', { message: 5 })).isError, true);
  }],
  ['filesystem', ['--ro', allowed], [allowed], async (call) => {
    assert.match(textOf(await call('read-text-file', { path: join(allowed, 'note.txt') })), /for the server/);
    assert.equal((await call('read-text-file', { path: join(scratch, 'secret.txt') })).isError, true);
  }],
  ['memory', ['--env', 'MEMORY_FILE_PATH=/workspace/memory.json'], [], async (call) => {
    const entities = [{ name: 'cofferdam', entityType: 'wall', observations: ['keeps water out'] }];
    assert.equal((await call('create-entities', { entities })).isError, false);
    assert.match(textOf(await call('search-nodes', { query: 'wall' })), /keeps water out/);
  }],
  ['sequential-thinking', [], [], async (call) => {
    const thought = { thought: 'first', nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 };
    assert.equal((await call('sequentialthinking', thought)).isError, false);
  }],
];
for (const [name, flags, args, work] of servers) {
  const command = [process.execPath, join(packages, `@modelcontextprotocol/server-${name}/dist/index.js`), ...args];
  const words = ['mcp', 'wrap', '--name', name, '--ro', resolve('.'), ...flags, '--', ...command];
  await step(`server-${name}, wrapped`, () => withClient(old, OldStdio, words, async (client) => {
    const { tools } = await client.listTools();
    assert.ok(tools.length > 0 && tools.every((tool) => tool.name.startsWith(`${name}-`)), JSON.stringify(tools));
    assert.ok(tools.every((tool) => tool.annotations.destructiveHint), 'what a server says of itself loosens nothing');
    await work((tool, given) => client.callTool({ name: `${name}-${tool}`, arguments: given }));
    if (name !== 'everything') {
      await assert.rejects(client.request({ method: 'prompts/list' }, { parse: (value) => value }), /offers no prompts|does not support/);
      return;
    }
    const { prompts } = await client.listPrompts();
    assert.ok(prompts.length > 0 && prompts.every((prompt) => prompt.name.startsWith('everything-')), JSON.stringify(prompts));
    const prompt = await client.getPrompt({ name: 'everything-args-prompt', arguments: { city: 'Bern' } });
    assert.match(prompt.messages[0].content.text, /Bern/);
    const { resources } = await client.listResources();
    assert.ok(resources.length > 0 && resources.every((one) => one.uri.startsWith('everything+')), JSON.stringify(resources));
    const { contents } = await client.readResource({ uri: resources[0].uri });
    assert.equal(contents[0].uri, resources[0].uri);
    const { resourceTemplates } = await client.listResourceTemplates();
    assert.ok(resourceTemplates.every((one) => one.uriTemplate.startsWith('everything+')), JSON.stringify(resourceTemplates));
    await assert.rejects(client.request({ method: 'completion/complete', params: {} }, { parse: (value) => value }), /not passed on|does not support/);
  }));
}
// The official server at a URL.
const port = await new Promise((done) => {
  const probe = createServer().listen(0, '127.0.0.1', () => {
    const { port: free } = probe.address();
    probe.close(() => done(free));
  });
});
const everything = join(packages, '@modelcontextprotocol/server-everything/dist/index.js');
const remote = spawn(process.execPath, [everything, 'streamableHttp'], { env: { ...process.env, PORT: String(port) }, stdio: ['ignore', 'ignore', 'pipe'] });
await new Promise((done, fail) => {
  remote.stderr.on('data', (text) => /listening/i.test(String(text)) && done());
  remote.on('exit', () => fail(new Error('server-everything did not start')));
});
const reach = ['--resolve', 'remote.test=127.0.0.1', '--dangerously-allow-address', '127.0.0.1/32'];
const words = ['mcp', 'wrap', '--name', 'remote', ...reach, '--url', `http://remote.test:${port}/mcp`];
await step('server-everything at a URL, wrapped', () => withClient(old, OldStdio, words, async (client) => {
  const { tools } = await client.listTools();
  assert.ok(tools.length > 0 && tools.every((tool) => tool.name.startsWith('remote-')), JSON.stringify(tools));
  assert.equal(textOf(await client.callTool({ name: 'remote-echo', arguments: { message: 'hello' } })), 'Echo: hello');
  assert.equal((await client.callTool({ name: 'remote-echo', arguments: { message: 5 } })).isError, true);
  const { prompts } = await client.listPrompts();
  assert.ok(prompts.length > 0 && prompts.every((prompt) => prompt.name.startsWith('remote-')), JSON.stringify(prompts));
  const { resources } = await client.listResources();
  const { contents } = await client.readResource({ uri: resources[0].uri });
  assert.equal(contents[0].uri, resources[0].uri);
}));
remote.removeAllListeners('exit');
remote.kill();
rmSync(scratch, { recursive: true, force: true });
console.log('all steps passed');
