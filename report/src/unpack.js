// The data that the program has put into the page: gzip, in base64.

/** The bytes of the element `id`. */
export async function unpack(id) {
  // What is not needed at once comes behind the script.
  if (!document.getElementById(id) && document.readyState === "loading") {
    await new Promise((done) => addEventListener("DOMContentLoaded", done, { once: true }));
  }
  const text = document.getElementById(id).textContent;
  const bytes = fromBase64(text);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** The document: see `crates/lab/src/output/report`. */
export async function document_() {
  const text = new TextDecoder().decode(await unpack("document"));
  const data = JSON.parse(text);
  if (data.format !== "anysched report" || data.version !== 1) {
    throw new Error(`this page reads version 1 of a report's data, not ${data.version}`);
  }
  return data;
}
