// What some bytes are: an image, text, or neither. Decided by the bytes and never by what a blob says about itself,
// because whoever stored it chose that.
//
// Promises: an image is one of four kinds that cannot carry script, and has a bounded number of pixels; what it is
// shown as is our own word for it. Text is shown as text. All functions are pure.

import { base64Of } from "./types.js";

/** So much of a blob is read for a look at its text. */
export const TEXT_BYTES_MAX = 256 * 1024;
/** An image must be whole, so more is read of what begins like one. */
export const IMAGE_BYTES_MAX = 8 * 1024 * 1024;
/** A few bytes can claim to be a picture that fills all memory. */
export const IMAGE_PIXELS_MAX = 40_000_000;
const HEX_BYTES_MAX = 512;
const INDENT_DEPTH_MAX = 40;

const startsWith = (bytes, text, at = 0) => [...text].every((one, index) => bytes[at + index] === one.charCodeAt(0));

/** The dimensions that the first frame of a JPEG gives. */
function jpegSize(view) {
  let at = 2;
  while (at + 9 <= view.byteLength && view.getUint8(at) === 0xff) {
    const marker = view.getUint8(at + 1);
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return [view.getUint16(at + 7), view.getUint16(at + 5)];
    at += 2 + view.getUint16(at + 2);
  }
  return undefined;
}

function webpSize(view, bytes) {
  if (startsWith(bytes, "VP8X", 12)) {
    const three = (at) => view.getUint8(at) + (view.getUint8(at + 1) << 8) + (view.getUint8(at + 2) << 16);
    return [three(24) + 1, three(27) + 1];
  }
  if (startsWith(bytes, "VP8L", 12)) {
    const packed = view.getUint32(21, true);
    return [(packed & 0x3fff) + 1, ((packed >> 14) & 0x3fff) + 1];
  }
  return startsWith(bytes, "VP8 ", 12)
    ? [view.getUint16(26, true) & 0x3fff, view.getUint16(28, true) & 0x3fff]
    : undefined;
}

/** The kind and size of an image, by its first bytes; undefined for everything else. */
export function imageIn(bytes) {
  if (bytes.length < 32) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let [type, size] = [undefined, undefined];
  if (startsWith(bytes, "\x89PNG\r\n\x1a\n"))
    [type, size] = ["image/png", [view.getUint32(16), view.getUint32(20)]];
  else if (startsWith(bytes, "GIF87a") || startsWith(bytes, "GIF89a"))
    [type, size] = ["image/gif", [view.getUint16(6, true), view.getUint16(8, true)]];
  else if (startsWith(bytes, "\xff\xd8\xff")) [type, size] = ["image/jpeg", jpegSize(view)];
  else if (startsWith(bytes, "RIFF") && startsWith(bytes, "WEBP", 8))
    [type, size] = ["image/webp", webpSize(view, bytes)];
  if (!size || size[0] * size[1] === 0) return undefined;
  return { type, width: size[0], height: size[1], isTooLarge: size[0] * size[1] > IMAGE_PIXELS_MAX };
}

export function imageAddress(type, bytes) {
  return `data:${type};base64,${base64Of(bytes)}`;
}

/** The text that bytes are in UTF-8; undefined if they are none. Cut bytes may end within a character. */
export function textIn(bytes, isWhole) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: !isWhole });
    // eslint-disable-next-line no-control-regex
    return /[\u0000-\u0008\u000e-\u001a\u001c-\u001f]/.test(text) ? undefined : text;
  } catch {
    return undefined;
  }
}

/** JSON with lines and indentation. Every token stays as it is, since a number may be longer than ours. */
export function indented(text) {
  try {
    JSON.parse(text);
  } catch {
    return undefined;
  }
  let depth = 0;
  const line = () => `\n${"  ".repeat(Math.min(depth, INDENT_DEPTH_MAX))}`;
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) ?? [];
  let out = "";
  tokens.forEach((token, index) => {
    const opens = token === "{" || token === "[";
    const closes = token === "}" || token === "]";
    const isEmpty = closes && /^[{[]$/.test(tokens[index - 1]);
    if (closes) depth -= 1;
    if (closes && !isEmpty) out += line();
    out += token === ":" ? ": " : token;
    if (opens) depth += 1;
    if ((opens && !/^[}\]]$/.test(tokens[index + 1])) || token === ",") out += line();
  });
  return out;
}

/** The first bytes of what is neither: places, bytes and letters, as tools show them. */
export function hexLines(bytes) {
  const lines = [];
  for (let at = 0; at < Math.min(bytes.length, HEX_BYTES_MAX); at += 16) {
    const row = [...bytes.subarray(at, Math.min(at + 16, HEX_BYTES_MAX))];
    const hex = row.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const letters = row.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${hex.padEnd(47)}  ${letters}`);
  }
  return lines.join("\n");
}

/**
 * Reads at most so many bytes of an answer, counted after the browser has undone its encoding: a few stored bytes may
 * stand for very many. Tells whether that was all.
 */
export async function readUpTo(response, bytesMax) {
  const reader = response.body.getReader();
  const parts = [];
  let count = 0;
  let isWhole = false;
  try {
    while (count <= bytesMax) {
      const { done, value } = await reader.read();
      isWhole = done;
      if (done) break;
      parts.push(value);
      count += value.length;
    }
  } catch (error) {
    // A part of what is compressed ends too early; what came before is worth a look.
    if (error.name === "AbortError") throw error;
  }
  await reader.cancel().catch(() => {});
  const bytes = new Uint8Array(Math.min(count, bytesMax));
  let at = 0;
  for (const part of parts) {
    bytes.set(part.subarray(0, bytes.length - at), at);
    at += Math.min(part.length, bytes.length - at);
  }
  return { bytes, isWhole: isWhole && count <= bytesMax };
}
