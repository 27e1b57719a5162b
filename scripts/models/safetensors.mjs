/** Reads fp16 weights of a safetensors file as FP32, one at a time. */
import { open } from 'node:fs/promises';

/** FP32 value of every fp16 bit pattern. */
function halfTable() {
  const table = new Float32Array(65_536);
  for (let bits = 0; bits < 65_536; bits++) {
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    const size =
      exponent === 0
        ? fraction * 2 ** -24
        : exponent === 31
          ? fraction
            ? Number.NaN
            : Number.POSITIVE_INFINITY
          : (1 + fraction / 1024) * 2 ** (exponent - 15);
    table[bits] = bits & 32_768 ? -size : size;
  }
  return table;
}

/** The nearest value with 8 bits of significand, ties to even. */
function roundToBfloat16(values) {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  for (let i = 0; i < bits.length; i++) bits[i] = (bits[i] + 0x7fff + ((bits[i] >>> 16) & 1)) & 0xffff0000;
}

function transpose(values, rows, columns) {
  const turned = new Float32Array(values.length);
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) turned[column * rows + row] = values[row * columns + column];
  return turned;
}

/**
 * @returns `{ weight(name, { as, transposed }), close() }`; `weight` answers what `writeModel` takes, and reads the file
 * only when its turn comes. `bfloat16: true` rounds every value to bfloat16's precision.
 */
export async function openSafetensors(path, { bfloat16 = false } = {}) {
  const file = await open(path, 'r');
  const read = async (length, position) => {
    const buffer = Buffer.alloc(length);
    const { bytesRead } = await file.read(buffer, 0, length, position);
    if (bytesRead !== length) throw new Error(`${path}: ends at ${position + bytesRead}, wanted ${position + length}`);
    return buffer;
  };
  const headBytes = Number((await read(8, 0)).readBigUInt64LE());
  const head = JSON.parse((await read(headBytes, 8)).toString('utf8'));
  const table = halfTable();

  async function values(entry, transposed) {
    const [start, end] = entry.data_offsets;
    const raw = await read(end - start, 8 + headBytes + start);
    const halves = new Uint16Array(raw.buffer, raw.byteOffset, raw.length / 2);
    let floats = new Float32Array(halves.length);
    for (let i = 0; i < halves.length; i++) floats[i] = table[halves[i]];
    if (bfloat16) roundToBfloat16(floats);
    if (transposed) floats = transpose(floats, entry.shape[0], entry.shape[1]);
    return Buffer.from(floats.buffer);
  }

  return {
    weight(name, { as = name, transposed = false } = {}) {
      const entry = head[name];
      if (entry?.dtype !== 'F16') throw new Error(`${path}: no fp16 tensor ${name}`);
      const dims = transposed ? [...entry.shape].reverse() : entry.shape;
      const sizeBytes = 4 * dims.reduce((product, dim) => product * dim, 1);
      return { name: as, dataType: 1, dims, sizeBytes, read: () => values(entry, transposed) };
    },
    close: () => file.close(),
  };
}
