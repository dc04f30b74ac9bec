// SPDX-License-Identifier: Apache-2.0
//
// Our traces against the protobuf schema of OTLP as OpenTelemetry ships it (the generated code of otlp-transformer).
//
//   node check.mjs FILE    one ExportTraceServiceRequest as JSON on each line
//
// A request is good if it goes through the schema's binary form and comes back as it was: a name that the schema does not
// know, or a value of another type, would be lost or changed on the way. Before that, every good request is broken in several
// ways, and each must be found: without that the check would prove nothing.
import assert from "node:assert";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const root = createRequire(import.meta.url)(
  "@opentelemetry/otlp-transformer/build/src/generated/root.js");
const Request = root.opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest;

// OTLP's JSON is protobuf's JSON but for these: hex instead of base64.
const IDS = { traceId: 16, spanId: 8, parentSpanId: 8 };

function mapIds(value, change) {
  if (Array.isArray(value)) {
    return value.map((one) => mapIds(one, change));
  }
  if (value === null || typeof value !== "object" || value instanceof Uint8Array) {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name, name in IDS ? change(one, name) : mapIds(one, change)]));
}

function toBytes(text, name) {
  assert.match(text, new RegExp(`^[0-9a-f]{${2 * IDS[name]}}$`), `${name} is not ${IDS[name]} bytes in lower-case hex`);
  assert.ok(/[^0]/.test(text), `${name} is all zeros`);
  return Uint8Array.from(Buffer.from(text, "hex"));
}

// To protobuf a list of nothing is the same as none.
function withoutEmptyLists(value) {
  if (Array.isArray(value)) {
    return value.map(withoutEmptyLists);
  }
  if (value === null || typeof value !== "object") {
    return value;
  }
  return Object.fromEntries(Object.entries(value).filter(([, one]) => !Array.isArray(one) || one.length > 0)
    .map(([name, one]) => [name, withoutEmptyLists(one)]));
}

// Numbers of 64 bits are strings, enums are numbers: the schema's code would also take them otherwise, and give them back so.
function check(request) {
  const message = Request.fromObject(mapIds(request, toBytes));
  assert.equal(Request.verify(message), null);
  const back = Request.toObject(Request.decode(Request.encode(message).finish()),
    { longs: String, enums: Number, bytes: Array });
  const again = mapIds(back, (bytes) => Buffer.from(bytes).toString("hex"));
  assert.deepStrictEqual(JSON.parse(JSON.stringify(again)), withoutEmptyLists(request));
}

const spansOf = (request) =>
  request.resourceSpans.flatMap((resource) => resource.scopeSpans.flatMap((scope) => scope.spans));

const BREAKS = {
  "an unknown name": (span) => { span.colour = "blue"; },
  "a name in snake case": (span) => { span.trace_id = span.traceId; delete span.traceId; },
  "a short id": (span) => { span.spanId = span.spanId.slice(2); },
  "an id in base64": (span) => { span.traceId = Buffer.from(span.traceId, "hex").toString("base64"); },
  "an id of nothing": (span) => { span.spanId = "0".repeat(16); },
  "a time as a number": (span) => { span.startTimeUnixNano = 5; },
  "an enum by its name": (span) => { span.kind = "SPAN_KIND_INTERNAL"; },
  "a plain value": (span) => { span.attributes[0].value = "x"; },
  "a status of words": (span) => { span.status = { code: "STATUS_CODE_ERROR" }; },
  "an integer as a number": (span) => { span.attributes.push({ key: "n", value: { intValue: 5 } }); },
};

const lines = readFileSync(process.argv[2], "utf8").split("\n").filter((line) => line !== "");
let spans = 0;
for (const line of lines) {
  const good = JSON.parse(line);
  check(good);
  spans += spansOf(good).length;
  for (const [what, breaks] of Object.entries(BREAKS)) {
    const bad = JSON.parse(line);
    breaks(spansOf(bad)[0]);
    assert.throws(() => check(bad), undefined, `not found: ${what}`);
  }
}
assert.ok(lines.length >= 4 && spans > lines.length, `only ${lines.length} requests with ${spans} spans`);
console.log(`${lines.length} requests with ${spans} spans are what the schema says; ` +
  `${lines.length * Object.keys(BREAKS).length} broken ones are not`);
