// SPDX-License-Identifier: Apache-2.0
//
// Tools of Cofferdam in the shapes of agent frameworks. None of them has to be installed: shapes are plain objects.
//
// A model decides about the name and the arguments of a call, so both are hostile. A name that was not offered is not
// called; arguments are checked by the tool's schema in the daemon. What goes back to the model is JSON, so that nothing a
// tool prints can pass for another field of the answer.
import { CofferError } from "./errors.js";

/** @typedef {import("./client.js").Coffer} Coffer */
/** @typedef {import("./values.js").CallResult} CallResult */
/** @typedef {import("./values.js").ToolInfo} ToolInfo */
/** @typedef {{ [name: string]: unknown }} Shape */
/** @typedef {{ sessionId?: string }} AdapterOptions */

/** The tools with their schemas: all that are ready, or those named. @param {Coffer} coffer @param {string[]} [names] @returns {Promise<ToolInfo[]>} */
export async function described(coffer, names) {
  const wanted = names ?? (await coffer.tools()).filter((tool) => tool.state === "ready").map((tool) => tool.name);
  return Promise.all(wanted.map((name) => coffer.tool(name)));
}

// ---- Definitions ----------------------------------------------------------------------------------------------------

/** @param {ToolInfo} tool */
const description = (tool) => tool.summary + (tool.blastRadius ? ` The call ${tool.blastRadius}.` : "");
/** @param {ToolInfo} tool @returns {Shape} */
const schema = (tool) => tool.inputSchema ?? { type: "object" };

/** `tools` of OpenAI's chat completions. @param {ToolInfo[]} tools @returns {Shape[]} */
export const openaiChatTools = (tools) => tools.map((tool) => ({
  type: "function", function: { name: tool.name, description: description(tool), parameters: schema(tool) },
}));

/** `tools` of OpenAI's responses. Not strict: that mode allows only a part of JSON Schema. @param {ToolInfo[]} tools @returns {Shape[]} */
export const openaiResponseTools = (tools) => tools.map((tool) => ({
  type: "function", name: tool.name, description: description(tool), parameters: schema(tool), strict: false,
}));

/** `tools` of Anthropic's messages. @param {ToolInfo[]} tools @returns {Shape[]} */
export const anthropicTools = (tools) => tools.map((tool) => ({
  name: tool.name, description: description(tool), input_schema: schema(tool),
}));

/**
 * For LangChain: `langchainTools(...).map(({ func, ...fields }) => tool(func, fields))`.
 * @param {Coffer} coffer @param {ToolInfo[]} tools @param {AdapterOptions} [options]
 * @returns {{ name: string, description: string, schema: Shape, func: (args: Shape) => Promise<string> }[]}
 */
export const langchainTools = (coffer, tools, options = {}) => tools.map((tool) => ({
  name: tool.name, description: description(tool), schema: schema(tool),
  func: async (args) => (await answer(coffer, tool.name, args, options)).text,
}));

/**
 * `tools` of the AI SDK. Its own `jsonSchema` marks a plain schema as one: `aiSdkTools(coffer, tools, jsonSchema)`.
 * @template S
 * @param {Coffer} coffer @param {ToolInfo[]} tools @param {(schema: any) => S} jsonSchema @param {AdapterOptions} [options]
 * @returns {{ [name: string]: { description: string, inputSchema: S, execute: (args: any) => Promise<Shape> } }}
 */
export const aiSdkTools = (coffer, tools, jsonSchema, options = {}) => Object.fromEntries(tools.map((tool) => [tool.name, {
  description: description(tool), inputSchema: jsonSchema(schema(tool)),
  execute: async (/** @type {any} */ args) => JSON.parse((await answer(coffer, tool.name, args, options)).text),
}]));

// ---- Calls that a model asks for ------------------------------------------------------------------------------------

/** What a model is told of a call: the same members as over MCP. @param {CallResult} result @returns {string} */
export const resultText = (result) => JSON.stringify({
  outcome: result.outcome, exit_code: result.exitCode, signal: result.exitSignal, stdout: result.stdout, stderr: result.stderr,
  truncated: result.truncated, error: result.error,
  denials: result.denials.map(({ rule, reason, fix }) => ({ rule, reason, fix })), retry_after: result.retryAfter,
  call_id: result.callId,
});

/** @param {unknown} error @returns {{ text: string, failed: boolean }} */
function failure(error) {
  if (!(error instanceof CofferError || error instanceof TypeError)) throw error;
  const name = error instanceof CofferError ? error.errorClass : "client.arguments";
  return { text: JSON.stringify({ outcome: "error", error: { class: name, message: error.message } }), failed: true };
}

/** @param {Coffer} coffer @param {string} name @param {Shape} args @param {AdapterOptions} options @returns {Promise<{ text: string, failed: boolean }>} */
async function answer(coffer, name, args, options) {
  try {
    const result = await coffer.call(name, args, { ...options, check: false });
    return { text: resultText(result), failed: !result.ok };
  } catch (error) {
    return failure(error);
  }
}

/** @param {Coffer} coffer @param {unknown} name @param {unknown} args @param {Iterable<string>} offered @param {AdapterOptions} options */
async function answerAsked(coffer, name, args, offered, options) {
  try {
    if (typeof name !== "string" || !new Set(offered).has(name)) throw new TypeError("this tool was not offered");
    let given = args;
    if (typeof args === "string") {
      try {
        given = JSON.parse(args);
      } catch {
        throw new TypeError("the arguments are not JSON");
      }
    }
    if (typeof given !== "object" || given === null || Array.isArray(given)) throw new TypeError("the arguments are not a JSON object");
    return await answer(coffer, name, /** @type {Shape} */ (given), options);
  } catch (error) {
    return failure(error);
  }
}

/**
 * Makes the call of one `tool_calls` entry (chat) or `function_call` item (responses); returns the message for it.
 * @param {Coffer} coffer @param {Shape} call @param {Iterable<string>} offered @param {AdapterOptions} [options] @returns {Promise<Shape>}
 */
export async function answerOpenai(coffer, call, offered, options = {}) {
  const part = /** @type {Shape} */ (typeof call["function"] === "object" && call["function"] !== null ? call["function"] : call);
  const { text } = await answerAsked(coffer, part["name"], part["arguments"], offered, options);
  if (call["type"] === "function_call") return { type: "function_call_output", call_id: call["call_id"], output: text };
  return { role: "tool", tool_call_id: call["id"], content: text };
}

/** Makes the call of one `tool_use` block; returns the `tool_result` block.
 * @param {Coffer} coffer @param {Shape} block @param {Iterable<string>} offered @param {AdapterOptions} [options] @returns {Promise<Shape>} */
export async function answerAnthropic(coffer, block, offered, options = {}) {
  const { text, failed } = await answerAsked(coffer, block["name"], block["input"], offered, options);
  return { type: "tool_result", tool_use_id: block["id"], content: text, is_error: failed };
}
