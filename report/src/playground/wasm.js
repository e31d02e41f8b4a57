// The simulator, as `crates/playground` has it: requests and answers through its memory.

export class Simulator {
  /** Of a compiled module; `progress(done, total)` is called while runs are made. */
  constructor(module, progress) {
    this.panic = null;
    const page = {
      progress,
      fault: (at, length) => {
        this.panic = new TextDecoder().decode(new Uint8Array(this.memory.buffer, at, length));
      },
    };
    const { exports } = new WebAssembly.Instance(module, { page });
    this.exports = exports;
    this.memory = exports.memory;
  }

  /** The parts of the answer: JSON as text, then blocks as bytes. Throws what it panics with. */
  ask(request) {
    const bytes = new TextEncoder().encode(JSON.stringify(request));
    const { room, ask, length } = this.exports;
    // Making room may move the memory.
    let at = room(bytes.length) >>> 0;
    new Uint8Array(this.memory.buffer, at, bytes.length).set(bytes);
    try {
      at = ask() >>> 0;
    } catch (error) {
      throw new Error(this.panic ?? `the simulator ended: ${error.message}`);
    }
    const answer = new Uint8Array(this.memory.buffer, at, length() >>> 0);
    const view = new DataView(this.memory.buffer, at, answer.length);
    const count = view.getUint32(0, true);
    let from = 4 * (count + 1);
    const parts = [];
    for (let part = 0; part < count; part++) {
      const until = from + view.getUint32(4 * (part + 1), true);
      parts.push(answer.slice(from, until));
      from = until;
    }
    const [json, ...blocks] = parts;
    return { json: new TextDecoder().decode(json), blocks };
  }
}
