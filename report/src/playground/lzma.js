// Unpacks LZMA. The simulator has a third less bytes in it than in what browsers unpack themselves.

const [BITS, ONE, ADAPT] = [11, 1 << 11, 5];
const TOP = 2 ** 24;
// Where a state goes after a literal, a match, a repeated match and a repeated byte.
const LITERAL = [0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 4, 5];
const after = (short, long) => (state) => (state < 7 ? short : long);
const [MATCH, REPEATED, BYTE] = [after(7, 10), after(8, 11), after(9, 11)];

const even = (count) => new Uint16Array(count).fill(ONE / 2);

/** Bits by their probabilities. */
class Bits {
  constructor(input, at) {
    this.input = input;
    this.at = at + 5;
    // Numbers of 32 bits outside of typed arrays would be made anew with each bit.
    this.state = Uint32Array.of(0xffffffff, new DataView(input.buffer, input.byteOffset + at)
      .getUint32(1));
  }

  bit(probabilities, index) {
    const { state } = this;
    const probability = probabilities[index];
    const bound = (state[0] >>> BITS) * probability;
    let bit = 0;
    if (state[1] < bound) {
      state[0] = bound;
      probabilities[index] = probability + ((ONE - probability) >> ADAPT);
    } else {
      state[0] -= bound;
      state[1] -= bound;
      probabilities[index] = probability - (probability >> ADAPT);
      bit = 1;
    }
    if (state[0] < TOP) this.more();
    return bit;
  }

  more() {
    this.state[0] <<= 8;
    this.state[1] = (this.state[1] << 8) | this.input[this.at++];
  }

  /** So many bits that are as likely 0 as 1. */
  plain(count) {
    const { state } = this;
    let value = 0;
    for (let left = count; left > 0; left--) {
      state[0] >>>= 1;
      const bit = state[1] >= state[0] ? 1 : 0;
      if (bit) state[1] -= state[0];
      value = (value << 1) | bit;
      if (state[0] < TOP) this.more();
    }
    return value;
  }

  /** A number of so many bits, the highest first. */
  tree(probabilities, from, count) {
    let node = 1;
    for (let left = count; left > 0; left--) {
      node = (node << 1) | this.bit(probabilities, from + node);
    }
    return node - (1 << count);
  }

  /** The same, the lowest first. */
  reverse(probabilities, from, count) {
    let [node, value] = [1, 0];
    for (let place = 0; place < count; place++) {
      const bit = this.bit(probabilities, from + node);
      node = (node << 1) | bit;
      value |= bit << place;
    }
    return value;
  }
}

/** How long a match is. */
class Lengths {
  constructor() {
    this.choices = even(2);
    this.low = even(16 << 3);
    this.middle = even(16 << 3);
    this.high = even(1 << 8);
  }

  next(bits, place) {
    if (!bits.bit(this.choices, 0)) return 2 + bits.tree(this.low, place << 3, 3);
    if (!bits.bit(this.choices, 1)) return 10 + bits.tree(this.middle, place << 3, 3);
    return 18 + bits.tree(this.high, 0, 8);
  }
}

/** What is in the bytes of a file `.lzma` that says how long it is. */
export function unlzma(input) {
  const header = new DataView(input.buffer, input.byteOffset, input.byteLength);
  const settings = header.getUint8(0);
  const [lc, lp, pb] = [settings % 9, Math.floor(settings / 9) % 5, Math.floor(settings / 45)];
  const size = header.getUint32(5, true);
  if (settings >= 225 || header.getUint32(9, true) !== 0) throw new Error("no LZMA of known length");
  const out = new Uint8Array(size);
  const bits = new Bits(input, 13);
  const literals = even(0x300 << (lc + lp));
  const [isMatch, isLong] = [even(12 << 4), even(12 << 4)];
  const [isRepeated, isOther0, isOther1, isOther2] = Array.from({ length: 4 }, () => even(12));
  const slots = even(4 << 6);
  const [special, aligned] = [even(128), even(1 << 4)];
  const [fresh, again] = [new Lengths(), new Lengths()];
  let [state, at, d0, d1, d2, d3] = [0, 0, 0, 0, 0, 0];

  const literal = () => {
    const before = at > 0 ? out[at - 1] : 0;
    const from = 0x300 * (((at & ((1 << lp) - 1)) << lc) + (before >> (8 - lc)));
    let symbol = 1;
    if (state >= 7) {
      let matched = out[at - d0 - 1];
      while (symbol < 0x100) {
        const hint = (matched >> 7) & 1;
        matched <<= 1;
        const bit = bits.bit(literals, from + ((1 + hint) << 8) + symbol);
        symbol = (symbol << 1) | bit;
        if (hint !== bit) break;
      }
    }
    while (symbol < 0x100) symbol = (symbol << 1) | bits.bit(literals, from + symbol);
    out[at++] = symbol;
    state = LITERAL[state];
  };

  const distance = (length) => {
    const slot = bits.tree(slots, Math.min(length - 2, 3) << 6, 6);
    if (slot < 4) return slot;
    const count = (slot >> 1) - 1;
    const base = (2 | (slot & 1)) << count;
    if (slot < 14) return base + bits.reverse(special, base - slot, count);
    return base + (bits.plain(count - 4) << 4) + bits.reverse(aligned, 0, 4);
  };

  /** The length of a match at one of the last distances, which becomes the first. */
  const repeated = (place) => {
    if (!bits.bit(isOther0, state)) {
      if (!bits.bit(isLong, (state << 4) + place)) {
        state = BYTE(state);
        return 1;
      }
    } else if (!bits.bit(isOther1, state)) {
      [d0, d1] = [d1, d0];
    } else if (!bits.bit(isOther2, state)) {
      [d0, d1, d2] = [d2, d0, d1];
    } else {
      [d0, d1, d2, d3] = [d3, d0, d1, d2];
    }
    state = REPEATED(state);
    return again.next(bits, place);
  };

  while (at < size) {
    const place = at & ((1 << pb) - 1);
    if (!bits.bit(isMatch, (state << 4) + place)) {
      literal();
      continue;
    }
    let length;
    if (bits.bit(isRepeated, state)) {
      length = repeated(place);
    } else {
      [d1, d2, d3] = [d0, d1, d2];
      length = fresh.next(bits, place);
      state = MATCH(state);
      d0 = distance(length);
    }
    if (d0 >= at || length > size - at) throw new Error("damaged LZMA");
    for (let from = at - d0 - 1; length > 0; length--) out[at++] = out[from++];
  }
  return out;
}
