// An experiment as a link: its text and files, deflated, behind the page's address.

/** Longer links are cut by programs that pass them on. */
export const MOST = 32 * 1024;
const KEY = "x=";

/** Bytes as base64. */
export function toBase64(bytes) {
  if (bytes.toBase64) return bytes.toBase64();
  let binary = "";
  for (let at = 0; at < bytes.length; at += 0x8000) {
    binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  }
  return btoa(binary);
}

/** Base64 as bytes. */
export function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

async function through(bytes, stream) {
  const piped = new Blob([bytes]).stream().pipeThrough(stream);
  return new Uint8Array(await new Response(piped).arrayBuffer());
}

/** What stands behind `#` in the address of what `shared` says: `toml`, `files` and others. */
export async function toHash(shared) {
  const bytes = new TextEncoder().encode(JSON.stringify(shared));
  const packed = toBase64(await through(bytes, new CompressionStream("deflate-raw")));
  const text = KEY + packed.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  if (text.length > MOST) {
    throw new Error(`the link would have ${Math.ceil(text.length / 1024)} KB, and programs cut links `
      + `of more than ${MOST / 1024} KB; save the experiment and send it with its files instead`);
  }
  return text;
}

/** What a link shares; null if it is about something else. */
export async function fromHash(hash) {
  const text = hash.replace(/^#/, "");
  if (!text.startsWith(KEY)) return null;
  const packed = text.slice(KEY.length).replaceAll("-", "+").replaceAll("_", "/");
  const padded = packed + "=".repeat((4 - (packed.length % 4)) % 4);
  const bytes = await through(fromBase64(padded), new DecompressionStream("deflate-raw"));
  const shared = JSON.parse(new TextDecoder().decode(bytes));
  if (typeof shared.toml !== "string") throw new Error("it has no experiment");
  return shared;
}
