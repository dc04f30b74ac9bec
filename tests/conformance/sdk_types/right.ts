// SPDX-License-Identifier: Apache-2.0
// A program that uses the client as it is meant.
import { CallDenied, Coffer, verifyReceipt, type CallResult, type FileInfo } from "cofferdam";
import { aiSdkTools, answerAnthropic, described, langchainTools, openaiChatTools } from "cofferdam/adapters";

const coffer = await Coffer.local({ tools: ["tools"] });
const result: CallResult = await coffer.call("python", { code: "print(1)" }, { limits: { memory: "64MiB" }, reason: "x" });
const code: number | null = result.exitCode;
if (result.outcome === "success") console.log(result.stdout.length, code, result.denials[0]?.fix);
for await (const event of await coffer.stream("bash", { command: "true" })) if (event.kind === "stdout") console.log(event.text);
const session = await coffer.newSession({ label: "x" });
const files: FileInfo[] = [];
for await (const file of session.files()) files.push(file);
const process = await session.start("bash", { command: "true" }, { ports: [8000] });
await process.signal("HUP");
try {
  await coffer.call("x");
} catch (error) {
  if (error instanceof CallDenied) console.log(error.errorClass, error.denials.length, error.result.callId);
}
const id: string = verifyReceipt((await coffer.receipt(result.callId)).raw, (await coffer.checkpoint()).key);
const tools = await described(coffer, ["python"]);
openaiChatTools(tools);
const shapes = aiSdkTools(coffer, tools, (schema) => ({ wrapped: schema }));
console.log(id, shapes["python"]?.inputSchema.wrapped, langchainTools(coffer, tools)[0]?.func({ code: "1" }));
await answerAnthropic(coffer, { name: "python" }, ["python"]);
await coffer.close();
