// SPDX-License-Identifier: Apache-2.0
//
// Numbers that look random and are the same for the same seed (mulberry32), and what one usually does with them.
export class Random {
  constructor(seed) {
    this.state = seed >>> 0;
    this.huge = false;  // whether numbers may occur that doubles cannot divide exactly; multipleOf does not, then
  }
  next() {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let t = this.state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }
  below(n) { return Math.floor(this.next() * n); }
  between(low, high) { return low + this.below(high - low + 1); }
  chance(p) { return this.next() < p; }
  pick(list) { return list[this.below(list.length)]; }
  // Up to `most` different ones.
  some(list, most) {
    const left = [...list];
    const out = [];
    for (let n = this.between(1, Math.min(most, left.length)); n > 0; --n) out.push(left.splice(this.below(left.length), 1)[0]);
    return out;
  }
}
