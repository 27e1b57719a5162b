import type { DataType, Signature, TensorSpec } from '@perch/contracts';

/** Bytes `first` to `last`, both included. */
export type RangeRead = (first: number, last: number) => Promise<Buffer>;

const smallestWindow = 16 * 1024;
const largestWindow = 1024 ** 2;

/**
 * A protobuf text read through a window, so that weights (length-delimited fields of many megabytes) are stepped over
 * and not fetched. The window grows while reading goes on without a jump.
 */
class Scanner {
  private window: Buffer = Buffer.alloc(0);
  private start = 0;
  private step = smallestWindow;

  constructor(
    private readonly read: RangeRead,
    private readonly size: number,
    private readonly signal: AbortSignal,
  ) {}

  async bytes(at: number, length: number): Promise<Buffer> {
    if (length < 0 || at + length > this.size) throw new Error('field runs past the end of the file');
    if (at < this.start || at + length > this.start + this.window.length) await this.move(at, length);
    return this.window.subarray(at - this.start, at - this.start + length);
  }

  private async move(at: number, length: number): Promise<void> {
    this.signal.throwIfAborted();
    const onward = at <= this.start + this.window.length && at >= this.start;
    this.step = onward ? Math.min(this.step * 2, largestWindow) : smallestWindow;
    const last = Math.min(this.size, at + Math.max(length, this.step)) - 1;
    this.window = await this.read(at, last);
    this.start = at;
    if (this.window.length < length) throw new Error('the store answered fewer bytes than asked for');
  }

  /** Value and the place after it. Numbers past 2^53 lose their lowest bits; only lengths and small numbers matter here. */
  async varint(at: number): Promise<[number, number]> {
    let value = 0;
    for (let n = 0; n < 10; n += 1) {
      const byte = (await this.bytes(at + n, 1))[0] as number;
      value += (byte & 0x7f) * 2 ** (7 * n);
      if (byte < 0x80) return [value, at + n + 1];
    }
    throw new Error('number of over 10 bytes');
  }

  /** Fields of the message between `at` and `end`; bodies are not read. */
  async *fields(at: number, end: number): AsyncGenerator<Field> {
    while (at < end) {
      const [tag, body] = await this.varint(at);
      const number = Math.floor(tag / 8);
      const wire = tag % 8;
      if (number === 0) throw new Error('field without a number');
      if (wire === 0) {
        const [value, next] = await this.varint(body);
        yield { number, wire, value, from: body, to: next };
        at = next;
      } else {
        const [length, from] = wire === 2 ? await this.varint(body) : [wire === 1 ? 8 : wire === 5 ? 4 : -1, body];
        if (length < 0 || from + length > end) throw new Error('field runs past the end of its message');
        yield { number, wire, value: 0, from, to: from + length };
        at = from + length;
      }
    }
  }

  async text(field: Field): Promise<string> {
    if (field.to - field.from > 4_096) throw new Error('name of over 4096 bytes');
    return (await this.bytes(field.from, field.to - field.from)).toString('utf8');
  }
}
interface Field {
  number: number;
  wire: number;
  /** Of a number field. */
  value: number;
  from: number;
  to: number;
}

/** ONNX TensorProto.DataType → Triton's name. */
const types: Record<number, DataType> = {
  1: 'FP32', 2: 'UINT8', 3: 'INT8', 4: 'UINT16', 5: 'INT16', 6: 'INT32', 7: 'INT64', 8: 'BYTES',
  9: 'BOOL', 10: 'FP16', 11: 'FP64', 12: 'UINT32', 13: 'UINT64', 16: 'BF16',
}; // biome-ignore format: one row reads better

/** Field numbers of onnx.proto. */
const model = { irVersion: 1, graph: 7, opsetImport: 8 };
const graph = { initializer: 5, input: 11, output: 12 };
const tensorName = 8;

/** What an ONNX file tells of itself; null: it does not. */
export interface OnnxSight {
  signature: Signature | null;
  /** Of the standard operators. */
  opset: number | null;
  ir: number | null;
  /** Why there is no signature. */
  fault: Error | null;
}

/**
 * Versions, inputs and outputs of an ONNX model, weights left out (old exporters list them as inputs too), free
 * dimensions -1. Throws when it is no ONNX model at all; a graph that holds something other than plain tensors of known
 * type and rank has no signature.
 */
export async function readOnnx(read: RangeRead, size: number, signal: AbortSignal): Promise<OnnxSight> {
  const scan = new Scanner(read, size, signal);
  const sight: OnnxSight = { signature: null, opset: null, ir: null, fault: null };
  let body: Field | undefined;
  for await (const field of scan.fields(0, size)) {
    if (field.number === model.irVersion && field.wire === 0) sight.ir = field.value;
    if (field.number === model.graph && field.wire === 2) body ??= field;
    if (field.number === model.opsetImport && field.wire === 2) sight.opset ??= await standardOpset(scan, field);
  }
  if (!body) throw new Error('file holds no graph');
  try {
    sight.signature = await readGraph(scan, body);
  } catch (error) {
    signal.throwIfAborted();
    sight.fault = error as Error;
  }
  return sight;
}

/** OperatorSetIdProto: domain = 1, version = 2. The standard operators have no domain, or say `ai.onnx`. */
async function standardOpset(scan: Scanner, at: Field): Promise<number | null> {
  const domain = await find(scan, at, 1);
  if (domain && !['', 'ai.onnx'].includes(await scan.text(domain))) return null;
  return (await find(scan, at, 2))?.value ?? null;
}

async function readGraph(scan: Scanner, at: Field): Promise<Signature> {
  const weights = new Set<string>();
  const inputs: TensorSpec[] = [];
  const outputs: TensorSpec[] = [];
  const specs: [Field, TensorSpec[]][] = [];
  for await (const field of scan.fields(at.from, at.to)) {
    if (field.wire !== 2) continue;
    if (field.number === graph.initializer) weights.add(await nameOfTensor(scan, field));
    if (field.number === graph.input) specs.push([field, inputs]);
    if (field.number === graph.output) specs.push([field, outputs]);
  }
  for (const [field, list] of specs) {
    const spec = await readSpec(scan, field, list === inputs ? weights : new Set());
    if (spec) list.push(spec);
  }
  if (outputs.length === 0) throw new Error('graph has no outputs');
  return { inputs, outputs };
}

async function nameOfTensor(scan: Scanner, tensor: Field): Promise<string> {
  for await (const field of scan.fields(tensor.from, tensor.to))
    if (field.number === tensorName) return scan.text(field);
  return '';
}

/** ValueInfoProto: name = 1, type = 2 { tensor_type = 1 { elem_type = 1, shape = 2 { dim = 1 } } }. */
async function readSpec(scan: Scanner, info: Field, weights: ReadonlySet<string>): Promise<TensorSpec | undefined> {
  const name = await find(scan, info, 1);
  const text = name ? await scan.text(name) : '';
  if (weights.has(text)) return undefined;
  const tensor = await path(scan, info, [2, 1]);
  const element = tensor && (await find(scan, tensor, 1));
  const datatype = types[element?.value ?? 0];
  const shape = tensor && (await find(scan, tensor, 2));
  if (!text || !datatype || !shape) throw new Error(`${text || 'a value'} is no tensor of a known type and rank`);
  const dims: number[] = [];
  for await (const dim of scan.fields(shape.from, shape.to))
    if (dim.number === 1) dims.push(dimension((await find(scan, dim, 1))?.value));
  return { name: text, datatype, shape: dims };
}

const dimension = (value: number | undefined): number =>
  value !== undefined && Number.isSafeInteger(value) && value > 0 ? value : -1;

async function find(scan: Scanner, message: Field, number: number): Promise<Field | undefined> {
  for await (const field of scan.fields(message.from, message.to)) if (field.number === number) return field;
  return undefined;
}

async function path(scan: Scanner, message: Field, numbers: readonly number[]): Promise<Field | undefined> {
  let at: Field | undefined = message;
  for (const number of numbers) at = at && (await find(scan, at, number));
  return at;
}
