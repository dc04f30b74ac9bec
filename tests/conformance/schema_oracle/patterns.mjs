// SPDX-License-Identifier: Apache-2.0
//
// Regular expressions from the part of ECMA-262 that we implement, and texts that nearly match them.
const LITERALS = ["a", "b", "c", "0", "7", "_", "-", " ", "é", "ß", "€", "𝄞", "\\.", "\\/", "\\\\", "\\n", "\\t", "\\x41",
  "\\u00e9", "\\u{1D11E}", "\\ud834\\udd1e", "\\cJ", "[\\0]", "\\$", "\\{", "\\]", "=", "!", "<", ":", "\"", "#", "&", "~", "@"];
const CLASSES = ["\\d", "\\D", "\\w", "\\W", "\\s", "\\S", ".", "[a-c]", "[^a-c]", "[abc-]", "[-a]", "[\\d_]", "[^\\w]", "[\\s\\S]",
  "[^]", "[é-ü]", "[^\\n]", "[\\]\\-]", "[a-z0-9._]", "[^\\W]", "[^\\D7]", "[\\b]", "[.]", "[𝄞-𝄟]", "[^𝄞]", "[\\u{1D100}-\\u{1D1FF}]", "[ -~]"];
const QUANTIFIERS = ["*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "*?", "+?", "{0}", "{1,2}?"];
const ALPHABET = ["a", "b", "c", "A", "0", "7", "_", "-", " ", "\n", "\r", "\t", "\u00a0", "\u2028", "\ufeff", "\u180e", "\u0085", "é", "ß", "€", "𝄞", "𝄟",
  ".", "/", "\\", "$", "{", "]", "=", "!", "<", ":", "\"", "#", "\b", "\u0000", "~", "@", "\v", "\u3000", "\u200b"];

function atom(random, depth) {
  const roll = random.next();
  if (depth > 0 && roll < 0.2) return (random.chance(0.5) ? "(" : "(?:") + alternatives(random, depth - 1) + ")";
  return roll < 0.6 ? random.pick(LITERALS) : random.pick(CLASSES);
}

function sequence(random, depth) {
  let out = "";
  for (let n = random.between(0, 3); n >= 0; --n) {
    if (random.chance(0.05)) { out += random.pick(["\\b", "\\B"]); continue; }
    out += atom(random, depth) + (random.chance(0.35) ? random.pick(QUANTIFIERS) : "");
  }
  return out;
}

function alternatives(random, depth) {
  let out = sequence(random, depth);
  while (random.chance(0.2)) out += "|" + (random.chance(0.1) ? "" : sequence(random, depth));
  return out;
}

export function pattern(random) {
  const body = alternatives(random, 2);
  const roll = random.next();
  if (roll < 0.45) return "^(?:" + body + ")$";
  if (roll < 0.6) return "^" + body;
  if (roll < 0.75) return body + "$";
  return body;
}

export function text(random) {
  let out = "";
  for (let n = random.below(6); n > 0; --n) out += random.pick(ALPHABET);
  return out;
}

// Tries for a text that matches, so that both answers occur.
export function textFor(random, source) {
  const expression = new RegExp(source, "u");
  let best = text(random);
  for (let i = 0; i < 40 && !expression.test(best); ++i) best = text(random);
  return best;
}
