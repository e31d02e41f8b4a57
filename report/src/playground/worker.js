// The worker: it gets a compiled module first, then requests, each of which has an answer.

import { Simulator } from "./wasm.js";

const PAUSE = 50; // ms between two times that progress is told
let [module, simulator, told] = [null, null, 0];

function progress(done, total) {
  const now = performance.now();
  if (now - told < PAUSE) return;
  told = now;
  postMessage({ done, total });
}

onmessage = ({ data }) => {
  if (data.module) {
    ({ module } = data);
    return;
  }
  try {
    simulator ??= new Simulator(module, progress);
    const { json, blocks } = simulator.ask(data.request);
    postMessage({ id: data.id, json, blocks }, blocks.map((block) => block.buffer));
  } catch (error) {
    // After a panic its memory cannot be trusted.
    simulator = null;
    postMessage({ id: data.id, fault: error.message });
  }
};
