/** @typedef {import("./client.js").Coffer} Coffer */
/** @typedef {import("./values.js").CallResult} CallResult */
/** @typedef {import("./values.js").ToolInfo} ToolInfo */
/** @typedef {{ [name: string]: unknown }} Shape */
/** @typedef {{ sessionId?: string }} AdapterOptions */
/** The tools with their schemas: all that are ready, or those named. @param {Coffer} coffer @param {string[]} [names] @returns {Promise<ToolInfo[]>} */
export function described(coffer: Coffer, names?: string[]): Promise<ToolInfo[]>;
/**
 * Makes the call of one `tool_calls` entry (chat) or `function_call` item (responses); returns the message for it.
 * @param {Coffer} coffer @param {Shape} call @param {Iterable<string>} offered @param {AdapterOptions} [options] @returns {Promise<Shape>}
 */
export function answerOpenai(coffer: Coffer, call: Shape, offered: Iterable<string>, options?: AdapterOptions): Promise<Shape>;
/** Makes the call of one `tool_use` block; returns the `tool_result` block.
 * @param {Coffer} coffer @param {Shape} block @param {Iterable<string>} offered @param {AdapterOptions} [options] @returns {Promise<Shape>} */
export function answerAnthropic(coffer: Coffer, block: Shape, offered: Iterable<string>, options?: AdapterOptions): Promise<Shape>;
export function openaiChatTools(tools: ToolInfo[]): Shape[];
export function openaiResponseTools(tools: ToolInfo[]): Shape[];
export function anthropicTools(tools: ToolInfo[]): Shape[];
export function langchainTools(coffer: Coffer, tools: ToolInfo[], options?: AdapterOptions): {
    name: string;
    description: string;
    schema: Shape;
    func: (args: Shape) => Promise<string>;
}[];
export function aiSdkTools<S>(coffer: Coffer, tools: ToolInfo[], jsonSchema: (schema: any) => S, options?: AdapterOptions): {
    [name: string]: {
        description: string;
        inputSchema: S;
        execute: (args: any) => Promise<Shape>;
    };
};
export function resultText(result: CallResult): string;
export type Coffer = import("./client.js").Coffer;
export type CallResult = import("./values.js").CallResult;
export type ToolInfo = import("./values.js").ToolInfo;
export type Shape = {
    [name: string]: unknown;
};
export type AdapterOptions = {
    sessionId?: string;
};
