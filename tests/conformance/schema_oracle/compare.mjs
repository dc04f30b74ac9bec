// SPDX-License-Identifier: Apache-2.0
//
// Asks ajv and our validator the same questions and compares. Usage:
//   node compare.mjs --program PATH [--seed N] [--schemas N] [--show N]
//
// Fails if the two disagree about any instance of a schema that we load, if we refuse a schema that has no refused
// feature, or load one that has, or if a known difference (deviations.json) is not what it was. Then the control: our
// program is made wrong on purpose, one keyword at a time, and every one of these bugs must be noticed.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import Ajv2020 from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { Random } from "./random.mjs";
import { refusedSchema, SchemaMaker } from "./schemas.mjs";
import { anything, changed, near } from "./values.mjs";

const options = { seed: "1", schemas: "2500", show: "10" };
for (let i = 2; i + 1 < process.argv.length; i += 2) options[process.argv[i].replace(/^--/, "")] = process.argv[i + 1];
const PER_SCHEMA = 6;

// Without a tolerance ajv takes 19.99 for no multiple of 0.01. The schemas are well-formed: ajv need not check, which
// takes most of its time.
const SETTINGS = { strict: false, logger: false, ownProperties: true, multipleOfPrecision: 9, validateSchema: false, meta: false };
function ajvFor(schema, allErrors) {
  const ajv = new Ajv2020.default({ ...SETTINGS, allErrors });
  addFormats.default(ajv);
  return ajv.compile(schema);
}

// ajv generates different code with and without allErrors, and each has bugs of its own (variables that keep a value
// from an earlier round, mostly around contains and unevaluated*). Where the two contradict each other, or one throws,
// there is no oracle: undefined. Both go wrong where `contains` meets an
// empty array.
function oracleFor(schema) {
  const both = [ajvFor(schema, false), ajvFor(schema, true)];
  const contains = JSON.stringify(schema).includes('"contains":');
  const hostname = JSON.stringify(schema).includes('"hostname"');  // a dot at its end is a known difference
  return (instance) => {
    if (contains && JSON.stringify(instance).includes("[]")) return undefined;
    if (hostname && JSON.stringify(instance).includes('."')) return undefined;
    try {
      const [first, second] = both.map((accepts) => accepts(instance));
      return first === second ? first : undefined;
    } catch (error) {
      if (error instanceof TypeError) return undefined;
      throw error;
    }
  };
}

function makeCases(seed, schemas) {
  const random = new Random(seed);
  const maker = new SchemaMaker(random);
  const cases = [];
  for (let i = 0; i < schemas; ++i) {
    if (random.chance(0.08)) {
      const { label, schema } = refusedSchema(random, maker);
      cases.push({ refused: label, schema, instance: null });
      continue;
    }
    random.huge = random.chance(0.3);
    const schema = maker.make();
    const accepts = oracleFor(schema);
    let instance = null;
    for (let k = 0; k < PER_SCHEMA; ++k) {
      if (k === 0) instance = anything(random, 2);
      else if (k % 2 === 1) instance = near(random, schema, schema);
      else instance = changed(random, instance);
      cases.push({ refused: null, schema, instance, expected: accepts(instance) });
    }
  }
  return cases;
}

const line = (one) => `{"schema":${JSON.stringify(one.schema)},"instance":${one.raw ? one.instance : JSON.stringify(one.instance)}}`;

function ask(cases, bug = []) {
  const run = spawnSync(options.program, bug, { input: cases.map(line).join("\n") + "\n", maxBuffer: 1 << 30, encoding: "utf8" });
  if (run.status !== 0) throw new Error(`${options.program} ${bug.join(" ")} ended with ${run.signal ?? run.status ?? run.error}: ${run.stderr}`);
  const answers = run.stdout.trimEnd().split("\n").map((text) => JSON.parse(text));
  if (answers.length !== cases.length) throw new Error(`${cases.length} questions, ${answers.length} answers`);
  return answers;
}

// What is wrong with an answer, or null.
function complaint(one, answer) {
  if (one.refused !== null) return answer.loaded ? `loaded, although it uses: ${one.refused}` : null;
  if (!answer.loaded) return "refused, although it uses nothing that we refuse";
  return one.expected === undefined || answer.valid === one.expected ? null : `we say ${answer.valid}, ajv says ${one.expected}`;
}

const BUGS = [
  ...["type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength", "pattern", "format",
    "maxItems", "minItems", "uniqueItems", "maxContains", "minContains", "maxProperties", "minProperties", "required", "dependentRequired", "properties",
    "patternProperties", "additionalProperties", "propertyNames", "items", "prefixItems", "contains", "unevaluatedItems", "unevaluatedProperties", "allOf",
    "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "$ref"].map((keyword) => ["--drop", keyword]),
  ...["maximum=exclusiveMaximum", "exclusiveMaximum=maximum", "minimum=exclusiveMinimum", "exclusiveMinimum=minimum", "oneOf=anyOf", "anyOf=oneOf", "anyOf=allOf",
    "then=else", "unevaluatedProperties=additionalProperties", "unevaluatedItems=items"].map((change) => ["--rename", change]),
  ...["maxLength=1", "maxLength=-1", "minLength=1", "minLength=-1", "maxItems=1", "minItems=1", "minContains=1", "maxContains=1", "maxProperties=1",
    "minProperties=1", "minimum=0.25", "maximum=-0.25"].map((change) => ["--shift", change]),
];

let failures = 0;
function fail(text) {
  if (++failures <= Number(options.show)) console.log("FAIL " + text);
}

const started = Date.now();
const seconds = () => ((Date.now() - started) / 1000).toFixed(1) + " s";
const cases = makeCases(Number(options.seed), Number(options.schemas));
const answers = ask(cases);
const counts = { valid: 0, invalid: 0, unclear: 0, refused: new Map() };
cases.forEach((one, i) => {
  const wrong = complaint(one, answers[i]);
  if (wrong) fail(`${wrong}\n  ${line(one)}\n  ${answers[i].why}`);
  if (one.refused !== null) counts.refused.set(one.refused, (counts.refused.get(one.refused) ?? 0) + 1);
  else counts[one.expected === undefined ? "unclear" : one.expected ? "valid" : "invalid"]++;
});
const refused = [...counts.refused.values()].reduce((a, b) => a + b, 0);
console.log(`seed ${options.seed}: ${counts.valid} valid and ${counts.invalid} invalid pairs, ${counts.unclear} without an oracle, ${refused} schemas to refuse for ${counts.refused.size} reasons; ${seconds()}`);
if (Math.min(counts.valid, counts.invalid) < cases.length / 4) fail("one of the two answers is too rare for the comparison to mean much");

if (counts.unclear > cases.length / 40) fail("there is no oracle for more than one pair in forty");

const deviations = JSON.parse(readFileSync(new URL("./deviations.json", import.meta.url)));
const ours = ask(deviations);
deviations.forEach((one, i) => {
  const theirs = ajvFor(one.schema, false)(one.raw ? JSON.parse(one.instance) : one.instance);
  if (!ours[i].loaded || ours[i].valid !== one.ours || theirs !== one.ajv) {
    fail(`known difference changed: ${one.why}: we say ${ours[i].valid}, ajv says ${theirs}`);
  }
});
console.log(`${deviations.length} known differences are as they were`);

const texts = new Map(cases.map((one) => [one, JSON.stringify(one.schema)]));
let noticed = 0;
for (const bug of BUGS) {
  const keyword = `"${bug[1].split("=")[0]}":`;
  const touched = cases.filter((one) => one.refused === null && texts.get(one).includes(keyword));
  const notices = (some) => {
    const wrong = ask(some, bug);
    return some.some((one, i) => wrong[i].loaded && complaint(one, wrong[i]));
  };
  // Most bugs show at once; only the rare ones need everything.
  if (notices(touched.slice(0, 300)) || notices(touched)) ++noticed;
  else fail(`control: nobody would notice the bug ${bug.join(" ")}`);
}
console.log(`control: ${noticed} of ${BUGS.length} planted bugs were noticed`);
console.log(`${failures === 0 ? "no disagreement" : failures + " failures"}; ${seconds()}`);
process.exit(failures === 0 ? 0 : 1);
