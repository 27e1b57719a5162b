import { JsonText } from '../json-text.ts';

export interface Layout {
  field: string;
  /** One text was asked for, so one vector stands alone. */
  single: boolean;
  /** Numbers of one vector. */
  size: number;
  encoding: 'float' | 'base64';
}

const bytesPerNumber = 21;

/** One vector: a list of numbers, or base64 of little-endian float32. */
function writeVector(text: JsonText, rows: Float32Array, from: number, { size, encoding }: Layout): void {
  if (encoding === 'float') text.float32List(rows, from, from + size);
  else text.raw(`"${Buffer.from(rows.buffer, rows.byteOffset + 4 * from, 4 * size).toString('base64')}"`);
}

function writeList(text: JsonText, count: number, write: (index: number) => void): void {
  text.raw('[');
  for (let i = 0; i < count; i++) {
    if (i > 0) text.raw(',');
    write(i);
  }
  text.raw(']');
}

const opened = (rows: Float32Array, { field }: Layout): JsonText =>
  new JsonText(rows.length * bytesPerNumber + 64).raw(`{${JSON.stringify(field)}:`);

/** `{"<field>": vector}` for one text, `{"<field>": [vector, …]}` for a list. */
export function writeVectors(rows: Float32Array, layout: Layout): Buffer {
  const text = opened(rows, layout);
  if (layout.single) writeVector(text, rows, 0, layout);
  else writeList(text, rows.length / layout.size, (i) => writeVector(text, rows, i * layout.size, layout));
  return text.raw('}').finish();
}

/** Vectors of all tokens that the mask keeps: a list of them for each text. */
export function writeTokenVectors(
  rows: Float32Array,
  { mask, tokens }: { mask: Int32Array; tokens: number },
  layout: Layout,
): Buffer {
  const text = opened(rows, layout);
  const writeText = (index: number): void => {
    const row = mask.subarray(index * tokens, (index + 1) * tokens);
    writeList(text, row.indexOf(0) < 0 ? tokens : row.indexOf(0), (token) =>
      writeVector(text, rows, (index * tokens + token) * layout.size, layout),
    );
  };
  if (layout.single) writeText(0);
  else writeList(text, mask.length / tokens, writeText);
  return text.raw('}').finish();
}
