// SPDX-License-Identifier: Apache-2.0
//
// Random schemas that we must load, and others that we must refuse, with the reason.
//
// Where ajv is known to differ from the standard, schemas avoid the combination; deviations.json pins each of these:
//   contains beside or below unevaluatedItems (ajv counts every item as evaluated)
//   unevaluatedItems beside anyOf, oneOf, if or $ref (ajv takes a branch that was not taken for one that was)
//   required with the empty name (ajv takes it for nothing missing)
//   an `if` without `then` or `else` below unevaluated* (ajv ignores what it evaluates)
//   unevaluated* in an `if` (ajv believes it although it failed)
import { pattern } from "./patterns.mjs";
import { anything, FORMAT_TEXTS, HUGE, NAMES } from "./values.mjs";

const PROPERTY_PATTERNS = ["^x", "\\d$", "^[a-c]$", "é", "^.$", "/", "^(?:a|x1)$"];
const REQUIRABLE = NAMES.filter((name) => name !== "");
const TYPES = ["null", "boolean", "integer", "number", "string", "array", "object"];

export class SchemaMaker {
  constructor(random) { this.random = random; }

  // A whole schema.
  make() {
    const random = this.random;
    this.defs = [];
    // Chosen once per schema, so that the combinations above stay apart.
    this.unevaluated = random.chance(0.3);
    const count = random.chance(0.4) ? random.between(1, 3) : 0;
    for (let i = 0; i < count; ++i) this.defs.push({ name: random.pick(["d" + i, "e/" + i, "f~" + i, "g " + i]), anchor: random.chance(0.3) ? "anchor" + i : null });
    this.usable = 0;  // definitions may refer to earlier ones in place, to any from below
    const definitions = {};
    for (const def of this.defs) {
      const body = this.schema(2);
      const anchored = typeof body === "object" ? body : { allOf: [body] };
      definitions[def.name] = def.anchor ? { $anchor: def.anchor, ...anchored } : body;
      ++this.usable;
    }
    let schema = this.schema(3);
    if (typeof schema !== "object") schema = count > 0 ? { allOf: [schema] } : schema;
    if (typeof schema !== "object") return schema;
    if (random.chance(0.2)) schema = { $schema: "https://json-schema.org/draft/2020-12/schema", title: "t", description: "d", ...schema };
    if (count > 0) schema.$defs = definitions;
    return schema;
  }

  schema(depth, below = false) {
    const random = this.random;
    if (random.chance(0.04)) return random.chance(0.6);
    if (this.defs.length > 0 && random.chance(0.2)) {
      const ref = this.ref(below);
      if (ref) return random.chance(0.3) ? { ...this.shape(depth), $ref: ref } : { $ref: ref };
    }
    const out = this.shape(depth);
    if (depth > 0 && random.chance(0.3)) Object.assign(out, this.combination(depth - 1, below));
    if (this.unevaluated && random.chance(0.35)) {
      const rest = random.chance(0.6) ? false : this.schema(0, true);
      if (random.chance(0.6)) Object.assign(out, { unevaluatedProperties: rest }, random.chance(0.3) ? { allOf: [this.objectShape(1)] } : {});
      else if (!conditional(out)) Object.assign(out, { unevaluatedItems: rest }, random.chance(0.4) ? { allOf: [this.arrayShape(1)] } : {});
    }
    if (random.chance(0.05)) Object.assign(out, random.pick([{ $comment: "c" }, { default: 1 }, { examples: [1] }, { deprecated: true }, { readOnly: true }, { writeOnly: false }]));
    return out;
  }

  // From below (a member or an item) a definition may refer to itself and to the root.
  ref(below) {
    const random = this.random;
    const reachable = below ? this.defs : this.defs.slice(0, this.usable);
    if (below && random.chance(0.15)) return "#";
    if (reachable.length === 0) return null;
    const def = random.pick(reachable);
    if (def.anchor && random.chance(0.5)) return "#" + def.anchor;
    return "#/$defs/" + encodeURIComponent(def.name.replaceAll("~", "~0").replaceAll("/", "~1"));
  }

  shape(depth) {
    const random = this.random;
    const kind = random.pick(depth > 0 ? ["number", "number", "string", "string", "array", "array", "object", "object", "object", "values", "type"] : ["number", "string", "values", "type"]);
    const out = this[kind + "Shape"](depth);
    if (kind !== "values" && kind !== "type" && random.chance(0.6)) {
      const name = kind === "number" && random.chance(0.5) ? "integer" : kind;
      out.type = random.chance(0.85) ? name : [...new Set([name, random.pick(TYPES)])];
    }
    return out;
  }

  typeShape() { return { type: this.random.chance(0.5) ? this.random.pick(TYPES) : this.random.some(TYPES, 3) }; }

  valuesShape() {
    const random = this.random;
    if (random.chance(0.4)) return { const: anything(random, 2) };
    const values = Array.from({ length: random.between(1, 4) }, () => anything(random, 1));
    return { enum: values.filter((value, i) => values.findIndex((other) => JSON.stringify(other) === JSON.stringify(value)) === i) };
  }

  numberShape() {
    const random = this.random;
    const out = {};
    const bound = () => random.pick([random.between(-3, 8), random.between(-6, 12) / 2, 0.1, ...(random.huge ? HUGE : [])]);
    if (random.chance(0.3)) out.minimum = bound();
    if (random.chance(0.3)) out.maximum = bound();
    if (random.chance(0.2)) out.exclusiveMinimum = bound();
    if (random.chance(0.2)) out.exclusiveMaximum = bound();
    if (!random.huge && random.chance(0.3)) out.multipleOf = random.pick([1, 2, 3, 5, 0.5, 0.1, 0.01, 0.25, 1.5, 7, 0.3]);
    return out;
  }

  stringShape() {
    const random = this.random;
    const out = {};
    if (random.chance(0.3)) out.minLength = random.below(4);
    if (random.chance(0.3)) out.maxLength = random.chance(0.1) ? 3.0 : random.below(5);
    if (random.chance(0.4)) out.pattern = pattern(random);
    else if (random.chance(0.35)) out.format = random.pick(Object.keys(FORMAT_TEXTS));
    return out;
  }

  arrayShape(depth) {
    const random = this.random;
    const out = {};
    if (random.chance(0.4)) out.items = this.schema(depth - 1, true);
    if (random.chance(0.3)) out.prefixItems = Array.from({ length: random.between(1, 3) }, () => this.schema(depth - 1, true));
    if (random.chance(0.25)) out.minItems = random.below(4);
    if (random.chance(0.25)) out.maxItems = random.below(5);
    if (random.chance(0.3)) out.uniqueItems = random.chance(0.9);
    if (!this.unevaluated && random.chance(0.35)) {
      out.contains = random.chance(0.5) ? random.pick([{ type: random.pick(TYPES) }, { minimum: 1 }, { type: "string" }]) : this.schema(depth - 1, true);
      if (random.chance(0.4)) out.minContains = random.below(3);
      if (random.chance(0.4)) out.maxContains = random.below(4);
    }
    return out;
  }

  objectShape(depth) {
    const random = this.random;
    const out = {};
    const map = (names, most) => Object.fromEntries(random.some(names, most).map((name) => [name, this.schema(depth - 1, true)]));
    if (random.chance(0.7)) out.properties = map(NAMES, 4);
    if (random.chance(0.25)) out.patternProperties = map(PROPERTY_PATTERNS, 2);
    if (random.chance(0.3)) out.additionalProperties = random.chance(0.5) ? false : this.schema(depth - 1, true);
    if (random.chance(0.4)) out.required = random.some(REQUIRABLE, 2);
    if (random.chance(0.15)) out.propertyNames = random.pick([{ maxLength: random.below(3) }, { pattern: random.pick(PROPERTY_PATTERNS) }, { enum: random.some(NAMES, 5) }, { minLength: 1 }]);
    if (random.chance(0.15)) out.minProperties = random.below(3);
    if (random.chance(0.15)) out.maxProperties = random.below(4);
    if (random.chance(0.15)) out.dependentRequired = Object.fromEntries(random.some(NAMES, 2).map((name) => [name, random.some(REQUIRABLE, 2)]));
    if (random.chance(0.15)) out.dependentSchemas = Object.fromEntries(random.some(NAMES, 2).map((name) => [name, this.schema(depth - 1)]));
    return out;
  }

  combination(depth, below) {
    const random = this.random;
    const list = () => Array.from({ length: random.between(1, 3) }, () => this.schema(depth, below));
    switch (random.below(5)) {
      case 0: return { allOf: list() };
      case 1: return { anyOf: list() };
      case 2: return { oneOf: list() };
      case 3: return { not: this.schema(depth, below) };
      default: {
        const unevaluated = this.unevaluated;
        this.unevaluated = false;
        const out = { if: this.schema(depth, below) };
        this.unevaluated = unevaluated;
        const both = this.unevaluated || random.chance(0.5);
        if (both || random.chance(0.5)) out.then = this.schema(depth, below);
        if (both || !out.then) out.else = this.schema(depth, below);
        return out;
      }
    }
  }
}

// Whether what is evaluated in place may depend on the instance.
function conditional(schema) {
  const { items, prefixItems, properties, patternProperties, additionalProperties, ...inPlace } = schema;
  return /"(anyOf|oneOf|if|\$ref|dependentSchemas)":/.test(JSON.stringify(inPlace));
}

// One feature that must be refused, put somewhere into a schema: [label, keywords].
const REFUSED = [
  ["unknown keyword", { frobnicate: 1 }], ["misspelt keyword", { maxLenght: 3 }], ["$id", { $id: "http://example.com/s" }],
  ["remote $ref", { $ref: "http://example.com/s" }], ["remote $ref", { $ref: "other.json#/a" }], ["dangling $ref", { $ref: "#/$defs/nothing" }],
  ["dangling $ref", { $ref: "#nothing" }], ["$dynamicRef", { $dynamicRef: "#x" }], ["$dynamicAnchor", { $dynamicAnchor: "x" }],
  ["$vocabulary", { $vocabulary: {} }], ["definitions", { definitions: {} }], ["dependencies", { dependencies: {} }], ["additionalItems", { additionalItems: false }],
  ["contentEncoding", { contentEncoding: "base64" }], ["nullable", { nullable: true }], ["old items", { items: [true] }],
  ["unknown format", { format: "regex" }], ["unknown format", { format: "duration" }], ["unknown format", { format: "no-such" }],
  ["lookahead", { pattern: "^(?=a)" }], ["lookahead", { pattern: "(?!a)b" }], ["lookbehind", { pattern: "(?<=a)b" }], ["backreference", { pattern: "(a)\\1" }],
  ["named group", { pattern: "(?<n>a)" }], ["Unicode property", { pattern: "\\p{L}" }],
  ["large repetition", { pattern: "a{1001}" }], ["large repetition", { pattern: "(?:a{100}){100}" }], ["broken pattern", { pattern: "(" }], ["broken pattern", { pattern: "a{2,1}" }],
  ["needless escape", { pattern: "\\-" }], ["broken class", { pattern: "[b-a]" }], ["lone brace", { pattern: "a}" }], ["pattern of a name", { patternProperties: { "(?=a)": true } }],
  ["then alone", { then: true }], ["else alone", { else: true }], ["minContains alone", { minContains: 1 }], ["maxContains alone", { maxContains: 1 }],
  ["empty enum", { enum: [] }], ["wrong type of value", { maxLength: "3" }], ["negative count", { minItems: -1 }], ["fraction as a count", { minItems: 1.5 }],
  ["multipleOf 0", { multipleOf: 0 }], ["unknown type", { type: "text" }], ["no type", { type: [] }], ["required twice", { required: ["a", "a"] }],
  ["empty allOf", { allOf: [] }], ["a schema that is a number", { not: 3 }], ["circle", { allOf: [{ $ref: "#" }] }],
];
const REFUSED_AT_TOP = [
  ["other dialect", { $schema: "http://json-schema.org/draft-07/schema#" }], ["other dialect", { $schema: "https://json-schema.org/draft/2019-09/schema" }],
];

export function refusedSchema(random, maker) {
  if (random.chance(0.1)) {
    const [label, part] = random.pick(REFUSED_AT_TOP);
    return { label, schema: { ...part, ...maker.numberShape() } };
  }
  const [label, part] = random.pick(REFUSED);
  const inner = { ...maker.numberShape(), ...part };
  if (label === "circle") return { label, schema: inner };
  const places = [inner, { properties: { a: inner } }, { items: inner }, { anyOf: [true, inner] }, { $defs: { unused: inner } }, { if: inner, then: true }, { prefixItems: [true, { not: inner }] }];
  return { label, schema: random.pick(places) };
}
