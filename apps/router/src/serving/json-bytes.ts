/** A value with its bytes as base64 texts, which is how JSON carries them; the value itself where it holds none. */
function withoutBytes(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64'); // biome-ignore format: one row reads better
  if (Array.isArray(value)) {
    // long lists are of numbers
    if (typeof value[0] === 'number') return value;
    const parts = value.map(withoutBytes);
    return parts.some((part, at) => part !== value[at]) ? parts : value;
  }
  let changed: Record<string, unknown> | undefined;
  for (const [key, one] of Object.entries(value)) {
    const plain = withoutBytes(one);
    if (plain === one) continue;
    changed ??= { ...value };
    changed[key] = plain;
  }
  return changed ?? value;
}

export const jsonText = (value: unknown): string => JSON.stringify(withoutBytes(value) ?? null);

/** A value as the body of a request: bytes as they are, else JSON. */
export function encodeBody(value: unknown): { bytes: Buffer; contentType: string } {
  if (Buffer.isBuffer(value)) return { bytes: value, contentType: 'application/octet-stream' };
  return { bytes: Buffer.from(jsonText(value)), contentType: 'application/json' };
}

/** What a module answered as a JSON value: a Buffer is JSON text already. */
export const jsonOf = (value: unknown): unknown =>
  Buffer.isBuffer(value) ? JSON.parse(value.toString('utf8')) : (value ?? null);
