import { type DataType, elementBytes, type TensorSpec } from '@perch/contracts';
import { hasBrokenNumber } from './tensor-values.ts';

/** One output of a reply, as far as its contract goes. */
export interface SeenOutput {
  name: string;
  datatype: string;
  shape: readonly number[];
  /** Its binary form; undefined where its values came as JSON, or went into shared memory. */
  bytes?: Uint8Array | undefined;
  /** Values that came as JSON: how many, and whether one of them is none (NaN, +∞, null). */
  values?: { count: number; broken: boolean } | undefined;
}

/** What a request may have asked for beyond the plain outputs of the model; looked at only when a reply looks wrong. */
export interface Asked {
  /** It names outputs, so not all of them are due. */
  some(): boolean;
  /** It wants classes in the place of scores: text, and as many as it says. */
  classes(): boolean;
}

export type ContractFault = 'unreadable' | 'empty' | 'missing' | 'unknown' | 'type' | 'shape' | 'number';

const count = (shape: readonly number[]): number => shape.reduce((product, dim) => product * dim, 1);

/** −1 in `declared` stands for any size. */
const fits = (shape: readonly number[], declared: readonly number[]): boolean =>
  shape.length === declared.length && declared.every((dim, at) => dim === -1 || dim === shape[at]);

/** Elements of text stand behind their 4-byte lengths. */
function textCount(bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let elements = 0;
  let at = 0;
  while (at + 4 <= bytes.length) {
    at += 4 + view.getUint32(at, true);
    elements += 1;
  }
  return at === bytes.length ? elements : -1;
}

function bytesFault({ datatype, shape }: SeenOutput, bytes: Uint8Array): ContractFault | undefined {
  const size = elementBytes[datatype as DataType];
  if (size === undefined) return 'type';
  const elements = size === 0 ? textCount(bytes) : bytes.length / size;
  if (elements === 0) return 'empty';
  if (elements !== count(shape)) return 'shape';
  return hasBrokenNumber(datatype, bytes) ? 'number' : undefined;
}

function valuesFault({ shape }: SeenOutput, values: { count: number; broken: boolean }): ContractFault | undefined {
  if (values.count === 0) return 'empty';
  if (values.count !== count(shape)) return 'shape';
  return values.broken ? 'number' : undefined;
}

function outputFault(output: SeenOutput, spec: TensorSpec | undefined, asked: Asked | undefined) {
  const { datatype, shape, bytes, values } = output;
  if (!Array.isArray(shape)) return 'unreadable';
  if (spec && !(datatype === 'BYTES' && spec.datatype !== 'BYTES' && asked?.classes())) {
    if (datatype !== spec.datatype) return 'type';
    if (!fits(shape, spec.shape)) return 'shape';
  }
  if (bytes) return bytesFault(output, bytes);
  return values && valuesFault(output, values);
}

/**
 * What is wrong with a reply, held against the outputs that its model declares; undefined: nothing. A tensor without any
 * element counts as empty also where its shape allows it: only the arms' rates are compared. With nothing declared (its
 * signature is not known) types and shapes are not judged.
 */
export function contractFault(
  outputs: readonly SeenOutput[],
  declared: readonly TensorSpec[],
  asked?: Asked,
): ContractFault | undefined {
  if (outputs.length === 0) return 'empty';
  for (const output of outputs) {
    const spec = declared.find(({ name }) => name === output.name);
    if (!spec && declared.length > 0) return 'unknown';
    const fault = outputFault(output, spec, asked);
    if (fault) return fault;
  }
  if (outputs.length < declared.length && !asked?.some()) {
    const got = new Set(outputs.map(({ name }) => name));
    if (declared.some(({ name, optional }) => !optional && !got.has(name))) return 'missing';
  }
  return undefined;
}
