/**
 * BYTES tensors as onnxruntime wants them: texts. Written out here, because a session's thread imports nothing but
 * onnxruntime: every further module would be loaded again for each instance.
 */
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/** Texts of a BYTES tensor that has been checked to be whole; throws where one is not UTF-8. */
export function textsOf(bytes: Uint8Array, name: string): string[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const texts: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + 4 + view.getUint32(at, true);
    try {
      texts.push(decoder.decode(bytes.subarray(at + 4, end)));
    } catch (cause) {
      throw new Error(`input '${name}' holds text that is not UTF-8`, { cause });
    }
    at = end;
  }
  return texts;
}

export function bytesOfTexts(texts: readonly string[]): Uint8Array {
  const encoded = texts.map((text) => encoder.encode(text));
  const bytes = new Uint8Array(encoded.reduce((sum, { length }) => sum + 4 + length, 0));
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const text of encoded) {
    view.setUint32(at, text.length, true);
    bytes.set(text, at + 4);
    at += 4 + text.length;
  }
  return bytes;
}
