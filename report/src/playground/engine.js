// The simulator in a worker: one request after the other, each of which can be stopped.

/** What a request was ended by. */
export class Stopped extends Error {}

/** The simulator cannot do what it was asked: the error that it gave, with its place. */
export class Refused extends Error {
  constructor(told) {
    super(told.text);
    Object.assign(this, told);
  }
}

export class Engine {
  /** Of the worker's program as a text, and a compiled module. */
  constructor(program, module) {
    this.url = URL.createObjectURL(new Blob([program], { type: "text/javascript" }));
    this.module = module;
    this.waiting = new Map();
    this.number = 0;
    this.progress = () => {};
    this.#start();
  }

  #start() {
    this.worker = new Worker(this.url);
    this.worker.postMessage({ module: this.module });
    this.worker.onmessage = ({ data }) => this.#told(data);
    this.worker.onerror = (event) => this.#end(new Error(event.message ?? "the worker failed"));
  }

  #told({ id, json, blocks, fault, done, total }) {
    if (id == null) return this.progress(done, total);
    const { resolve, reject } = this.waiting.get(id) ?? {};
    this.waiting.delete(id);
    if (fault) {
      return reject?.(new Error(`The simulator has failed, which is a fault of its own: ${fault}`));
    }
    const answer = JSON.parse(json);
    if (answer.error) reject?.(new Refused(answer.error));
    else resolve?.({ answer, blocks });
  }

  #end(error) {
    for (const { reject } of this.waiting.values()) reject(error);
    this.waiting.clear();
  }

  /** Whether something is under way. */
  get busy() {
    return this.waiting.size > 0;
  }

  /** The answer to a request, and its blocks. */
  ask(request) {
    const id = this.number++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, request });
    });
  }

  /** Ends what is under way. What was run is forgotten. */
  stop() {
    this.worker.terminate();
    this.#start();
    this.#end(new Stopped("Stopped."));
  }
}
