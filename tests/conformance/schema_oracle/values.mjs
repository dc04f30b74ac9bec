// SPDX-License-Identifier: Apache-2.0
//
// Instances: random ones, ones that try to satisfy a schema, and small changes around its boundaries.
import { text, textFor } from "./patterns.mjs";

export const NAMES = ["a", "b", "c", "d", "x1", "x2", "é", "a/b", "m~n", ""];
const NUMBERS = [0, 1, -1, 2, 3, 4, 5, 7, 10, 0.5, 1.5, 2.5, -2.5, 0.1, 0.2, 0.3, 0.7, 19.99, 1e3, 1.0e-7, 4294967296];
export const HUGE = [1e21, -1e21, 1e300, 9007199254740991, -9007199254740991, 123456789.25];
const numbers = (random) => (random.huge ? [...NUMBERS, ...HUGE] : NUMBERS);
export const FORMAT_TEXTS = {
  "date": ["2026-02-28", "2024-02-29", "2023-02-29", "1900-02-29", "2000-02-29", "2026-04-31", "2026-12-31", "2026-13-01", "2026-00-10", "2026-1-01",
    "2026-01-00", "02026-01-01", "2026-01-01 ", "2026/01/01", "", "0000-01-01", "9999-12-31", "２０26-01-01"],
  "date-time": ["2026-02-28T10:00:00Z", "2026-02-28t10:00:00z", "2026-02-28T10:00:00", "2026-02-28T10:00:00+01:30", "2026-02-28T24:00:00Z",
    "2026-02-28T23:59:60Z", "2026-02-28T22:59:60-01:00", "2026-02-28T23:58:60Z", "2026-02-28T10:60:00Z", "2026-02-28T10:00:61Z",
    "2026-02-28T10:00:00.123456789Z", "2026-02-28T10:00:00.Z", "2026-02-30T10:00:00Z", "2026-02-28T10:00:00+24:00", "2026-02-28T10:00:00+23:59",
    "2026-02-28T10:00:00-00:60", "2026-02-28T10:00:00,5Z", "2026-02-28X10:00:00Z", "2026-02-28T1:00:00Z", "2026-02-28", "T10:00:00Z", "",
    "2026-02-28T00:29:60+00:30", "1990-12-31T15:59:60-08:00", "2026-02-28T10:00:00Z ", "2026-02-28T10:00Z"],
  "email": ["a@example.com", "a.b+c@sub.example.com", "a@b", "@example.com", "a@", "a@@example.com", ".a@example.com", "a.@example.com", "a..b@example.com",
    "a b@example.com", "a@-example.com", "a@example-.com", "a@example..com", "é@example.com", "a@example.com.", "A_1!#$%&'*/=?^`{|}~-@EXAMPLE.co", "", "\"a\"@example.com", "a@1.2"],
  "hostname": ["example.com", "a", "a-b.c", "-a.b", "a-.b", "a..b", ".a", "", "a_b.c", "EXAMPLE.com", "1.2.3.4", "é.com", "x".repeat(63) + ".com",
    "x".repeat(64) + ".com", ("x".repeat(61) + ".").repeat(4) + "abcde", ("x".repeat(61) + ".").repeat(4) + "abcdef", "a b", "a.b-c"],
  "ipv4": ["1.2.3.4", "255.255.255.255", "256.1.1.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.04", "0.0.0.0", "1..2.3", "1.2.3.4 ", "1.2.3.a", "", "1.2.3.", ".1.2.3", "0x1.2.3.4", "1.2.3.4\n", "００0.1.1.1"],
  "ipv6": ["::", "::1", "1::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::8", "1::2::3", "::1.2.3.4", "1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:7:1.2.3.4", "12345::",
    "g::", "fe80::1%eth0", ":1", "1:", ":::", "::ffff:256.1.1.1", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1:2:3:4:5:6:7::8", "", "1.2.3.4", "1:2:3:4::5:6:7:8", "1.2.3.4::", "::1.2.3.4:5", "ABCD::ef01", "::01.2.3.4",
    "1::1.2.3.4", "1:2:3:4:5::1.2.3.4", "1:2:3:4:5:6::1.2.3.4"],
  "uri": ["https://example.com", "http://a/b?c=d#e", "a:b", "urn:isbn:1", "mailto:a@b.c", "//a/b", "/a", "a", "", "http://a b", "http://[::1]/", "http://[::1]:80/x", "http://[::g]/",
    "http://a:80", "http://u:p@h/", "1a://b", "http://a/%41", "http://a/%4", "http://a/%zz", "http://a/é", "http://a/{b}", "http://a/b\\c", "file:///etc/hosts", "a+b-c.d://e",
    "http://a?b?c/d", "http://a#b#c", "http://a/b|c", "http://a/\"", "http://1.2.3.4/", "http://[v1.a:b]/", "http://a/<b>", "http://a^b", "tel:+1-816", "http://a//b"],
  "uuid": ["0190b6a4-2f1c-7b3e-9c55-2d1f0a6e8c11", "0190B6A4-2F1C-7B3E-9C55-2D1F0A6E8C11", "0190b6a42f1c7b3e9c552d1f0a6e8c11", "0190b6a4-2f1c-7b3e-9c55-2d1f0a6e8c1", "0190b6a4-2f1c-7b3e-9c55-2d1f0a6e8c111",
    "g190b6a4-2f1c-7b3e-9c55-2d1f0a6e8c11", "{0190b6a4-2f1c-7b3e-9c55-2d1f0a6e8c11}", "0190b6a4-2f1c-7b3e-9c552-d1f0a6e8c11", "", "00000000-0000-0000-0000-000000000000", "0190b6a4-2f1c-7b3e-9c55-2d1f0a6e8c11 "],
};

// These are the boundaries already; a change would walk into the known differences.
const FORMAT_SAMPLES = new Set(Object.values(FORMAT_TEXTS).flat().filter((sample) => sample !== ""));

export function anything(random, depth = 2) {
  switch (random.below(depth > 0 ? 8 : 6)) {
    case 0: return null;
    case 1: return random.chance(0.5);
    case 2: return random.pick(numbers(random));
    case 3: return random.between(-4, 8);
    case 4: return text(random);
    case 5: return random.pick(["a", "b", "ab", "abc", "𝄞𝄞", "", "x1"]);
    case 6: return Array.from({ length: random.below(5) }, () => anything(random, depth - 1));
    default: return Object.fromEntries(Array.from({ length: random.below(4) }, () => [random.pick(NAMES), anything(random, depth - 1)]));
  }
}

function ofLength(random, length) {
  let out = "";
  for (let i = 0; i < length; ++i) out += random.pick(["a", "b", "é", "𝄞", "1"]);
  return out;
}

function resolve(root, ref) {
  if (ref === "#") return root;
  if (!ref.startsWith("#/")) return Object.values(root.$defs ?? {}).find((s) => s.$anchor === ref.slice(1)) ?? true;
  return ref.slice(2).split("/").reduce((at, step) => at?.[decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~")], root) ?? true;
}

// Something near what `schema` accepts.
export function near(random, schema, root, depth = 5) {
  if (typeof schema === "boolean" || depth === 0 || random.chance(0.04)) return anything(random, 1);
  if ("const" in schema) return schema.const;
  if (schema.enum) return random.pick(schema.enum);
  const via = [];
  if (schema.$ref) via.push(resolve(root, schema.$ref));
  for (const key of ["allOf", "anyOf", "oneOf"]) if (schema[key]) via.push(random.pick(schema[key]));
  if (schema.if) via.push(random.pick([schema.if, schema.then ?? true, schema.else ?? true]));
  if (via.length > 0 && random.chance(0.6)) return near(random, merged(schema, random.pick(via)), root, depth - 1);
  let type = schema.type ?? guess(random, schema);
  if (Array.isArray(type)) type = random.pick(type);
  switch (type) {
    case "null": return null;
    case "boolean": return random.chance(0.5);
    case "integer": case "number": return number(random, schema);
    case "string": return string(random, schema);
    case "array": return array(random, schema, root, depth);
    case "object": return object(random, schema, root, depth);
    default: return anything(random, 2);
  }
}

function merged(schema, other) {
  if (typeof other !== "object") return schema;
  const { $ref, allOf, anyOf, oneOf, if: _if, then: _then, else: _else, ...rest } = schema;
  const out = { ...rest, ...other };
  if (rest.properties && other.properties) out.properties = { ...rest.properties, ...other.properties };
  if (rest.required && other.required) out.required = [...rest.required, ...other.required];
  return out;
}

function guess(random, schema) {
  const hints = { object: ["properties", "required", "patternProperties", "additionalProperties", "propertyNames", "minProperties", "maxProperties", "dependentRequired", "dependentSchemas", "unevaluatedProperties"],
    array: ["items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems", "unevaluatedItems"],
    string: ["minLength", "maxLength", "pattern", "format"],
    number: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"] };
  const fitting = Object.keys(hints).filter((type) => hints[type].some((key) => key in schema));
  return fitting.length > 0 && random.chance(0.9) ? random.pick(fitting) : "any";
}

// As a person would write it: 0.3, not 0.30000000000000004. Integers stay what they are.
function decimal(value) { return Number.isInteger(value) ? value : Number(value.toPrecision(12)); }

function number(random, schema) {
  const bounds = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"].filter((key) => key in schema).map((key) => schema[key]);
  if (schema.multipleOf !== undefined && random.chance(0.7)) {
    const times = random.between(-3, 12);
    const exact = decimal(schema.multipleOf * times);
    return random.chance(0.75) ? exact : decimal(exact + schema.multipleOf / 2);
  }
  if (bounds.length > 0 && random.chance(0.9)) return decimal(random.pick(bounds) + random.pick([0, 0, 1, -1, 0.5, -0.5, 2]));
  return random.chance(0.5) ? random.between(-5, 10) : random.pick(numbers(random));
}

function string(random, schema) {
  if (schema.pattern !== undefined && random.chance(0.9)) return textFor(random, schema.pattern);
  if (schema.format && random.chance(0.95)) return random.pick(FORMAT_TEXTS[schema.format] ?? [""]);
  const lengths = [schema.minLength, schema.maxLength].filter((n) => n !== undefined);
  const length = lengths.length > 0 ? Math.max(0, random.pick(lengths) + random.pick([0, 0, 1, -1])) : random.below(4);
  return ofLength(random, length);
}

function array(random, schema, root, depth) {
  const bounds = [schema.minItems, schema.maxItems, schema.minContains, schema.maxContains, schema.prefixItems?.length].filter((n) => n !== undefined);
  const size = bounds.length > 0 ? Math.max(0, random.pick(bounds) + random.pick([0, 0, 1, -1])) : random.below(4);
  const out = [];
  for (let i = 0; i < size; ++i) {
    const rules = [schema.prefixItems?.[i] ?? schema.items ?? schema.unevaluatedItems ?? true];
    if (schema.contains !== undefined) rules.push(schema.contains);
    out.push(near(random, random.pick(rules), root, depth - 1));
  }
  if (out.length > 1 && random.chance(schema.uniqueItems ? 0.3 : 0.05)) out[0] = shuffled(random, out[out.length - 1]);
  return out;
}

// The same value: members in another order.
function shuffled(random, value) {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).reverse());
}

function object(random, schema, root, depth) {
  const out = {};
  const names = new Set();
  for (const name of schema.required ?? []) if (random.chance(0.92)) names.add(name);
  for (const name of Object.keys(schema.properties ?? {})) if (random.chance(0.6)) names.add(name);
  for (const name of [...Object.keys(schema.dependentRequired ?? {}), ...Object.keys(schema.dependentSchemas ?? {})]) if (random.chance(0.5)) names.add(name);
  for (const list of Object.values(schema.dependentRequired ?? {})) for (const name of list) if (random.chance(0.6)) names.add(name);
  const bounds = [schema.minProperties, schema.maxProperties].filter((n) => n !== undefined);
  const want = bounds.length > 0 ? random.pick(bounds) + random.pick([0, 0, 1, -1]) : names.size + (random.chance(0.3) ? 1 : 0);
  for (let i = 0; names.size < want && i < 20; ++i) names.add(random.pick(NAMES));
  for (const name of names) {
    const matching = Object.entries(schema.patternProperties ?? {}).filter(([source]) => new RegExp(source, "u").test(name)).map(([, rule]) => rule);
    const rule = schema.properties?.[name] ?? matching[0] ?? schema.additionalProperties ?? schema.unevaluatedProperties ?? true;
    out[name] = near(random, rule, root, depth - 1);
  }
  return out;
}

// One small change somewhere.
export function changed(random, value) {
  if (Array.isArray(value) && value.length > 0 && random.chance(0.7)) {
    const out = [...value];
    const i = random.below(out.length);
    switch (random.below(4)) {
      case 0: out.splice(i, 1); break;
      case 1: out.push(out[i]); break;
      default: out[i] = changed(random, out[i]);
    }
    return out;
  }
  if (value !== null && typeof value === "object" && !Array.isArray(value) && random.chance(0.8)) {
    const out = { ...value };
    const names = Object.keys(out);
    switch (random.below(4)) {
      case 0: out[random.pick(NAMES)] = anything(random, 1); break;
      case 1: if (names.length > 0) delete out[random.pick(names)]; break;
      default: if (names.length > 0) { const name = random.pick(names); out[name] = changed(random, out[name]); }
    }
    return out;
  }
  if (typeof value === "number" && random.chance(0.8)) return decimal(value + random.pick([1, -1, 0.5, -0.5]));
  if (typeof value === "string" && !FORMAT_SAMPLES.has(value) && random.chance(0.8)) return random.pick([value + "a", value + "𝄞", [...value].slice(0, -1).join(""), "a" + value, value.toUpperCase()]);
  return anything(random, 1);
}
