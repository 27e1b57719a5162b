import { AppError, type DataType, elementBytes, type Tensor, type Tensors } from '@perch/contracts/plain';
import type { CallContext } from '../contract.ts';
import { elementCount, int32, int64 } from '../tensor.ts';
import { normalizeRows } from '../text-embedding/pool.ts';
import type { ClipPlan, TextSide } from './clip-plan.ts';
import type { Found } from './image-body.ts';
import { imageBytes } from './image-bytes.ts';
import { poolPictures } from './image-embedding.ts';
import { readRows } from './model-output.ts';

/** Vectors of length 1, row by row. */
export interface Vectors {
  rows: Float32Array;
  size: number;
}

const wholes = (datatype: DataType, values: Int32Array, shape: readonly number[]): Tensor =>
  datatype === 'INT64' ? int64(BigInt64Array.from(values, BigInt), shape) : int32(values, shape);

function textInputs({ options }: ClipPlan, side: TextSide, texts: readonly string[]): Tensors {
  const { tokenizer, fixedTokens, ids, mask } = side;
  const maxTokens = fixedTokens > 0 ? Math.min(fixedTokens, options.maxTokens) : options.maxTokens;
  const batch = tokenizer.encodeBatch(texts, {
    maxTokens,
    overlong: options.overlong,
    padding: fixedTokens > 0 ? { to: fixedTokens } : 'longest',
  });
  return {
    [ids.name]: wholes(ids.datatype, batch.ids, batch.shape),
    ...(mask && { [mask.name]: wholes(mask.datatype, batch.mask, batch.shape) }),
  };
}

/** A picture of zeros for a graph that wants both inputs filled. */
function noPicture({ image }: ClipPlan): Tensors {
  if (!image) return {};
  const { name, datatype, shape } = image.plan.input;
  const sides = [1, ...shape.slice(-3)].map((dim, i) => (dim > 0 ? dim : i === 1 ? 3 : 224));
  return { [name]: { datatype, shape: sides, bytes: new Uint8Array(elementCount(sides) * elementBytes[datatype]) } };
}

const rowsOf = ({ rows, size }: Vectors): Vectors => ({ rows: normalizeRows(rows, size), size });

/** Vectors of other endpoints' answers: `{embeddings: [[…], …]}`. */
function vectorsOf(answer: unknown, count: number, endpoint: string): Vectors {
  const lists = (answer as { embeddings?: unknown } | null)?.embeddings;
  const size = Array.isArray(lists) && Array.isArray(lists[0]) ? lists[0].length : 0;
  const whole = Array.isArray(lists) && lists.length === count && size > 0 && lists.every((list) => Array.isArray(list) && list.length === size); // biome-ignore format: one sentence
  if (!whole)
    throw new AppError('upstream', `endpoint ${endpoint} did not answer ${count} embeddings as lists of numbers`);
  return rowsOf({ rows: Float32Array.from((lists as number[][]).flat()), size });
}

function joined(parts: Vectors[]): Vectors {
  const size = parts[0]!.size;
  const rows = new Float32Array(parts.reduce((sum, part) => sum + part.rows.length, 0));
  let at = 0;
  for (const part of parts) {
    if (part.size !== size) throw new AppError('upstream', 'vectors of one encoder are not equally long');
    rows.set(part.rows, at);
    at += part.rows.length;
  }
  return { rows, size };
}

const pieces = <T>(list: readonly T[], most: number): T[][] =>
  Array.from({ length: Math.ceil(list.length / most) }, (_, i) => list.slice(i * most, (i + 1) * most));

/** Vectors of texts, by this version's model or by the text encoder's endpoint; pieces of a batch side by side. */
export async function encodeTexts(plan: ClipPlan, texts: readonly string[], ctx: CallContext): Promise<Vectors> {
  const { text, options } = plan;
  if (!text && !options.textEndpoint)
    throw new AppError('invalid', 'this version encodes pictures only; set options.textEndpoint to the endpoint of its text encoder'); // biome-ignore format: one sentence
  const ask = async (part: string[]): Promise<Vectors> => {
    if (!text) return vectorsOf(await ctx.serve(options.textEndpoint!, { text: part }), part.length, options.textEndpoint!); // biome-ignore format: one sentence
    const outputs = await ctx.infer({ ...noPicture(plan), ...textInputs(plan, text, part) });
    const { values, shape } = readRows(outputs, text.output.name, { count: part.length, batched: true });
    return rowsOf(poolPictures(values, shape, 'cls'));
  };
  return joined(await Promise.all(pieces(texts, text ? text.atOnce : options.textsAtOnce).map(ask)));
}

/** Vectors of pictures, by this version's model or by the image encoder's endpoint. */
export async function encodeImages(plan: ClipPlan, found: Found, ctx: CallContext): Promise<Vectors> {
  const { image, text, options } = plan;
  if (!image && !options.imageEndpoint)
    throw new AppError('invalid', 'this version encodes texts only; set options.imageEndpoint to the endpoint of its image encoder'); // biome-ignore format: one sentence
  const most = image ? image.plan.pictures[1] : 8;
  const ask = async (values: unknown[], i: number): Promise<Vectors> => {
    const part = { ...found, values };
    if (!image) {
      const images = values.map((value) => imageBytes(value, found.name, options.maxBytes).toString('base64'));
      return vectorsOf(await ctx.serve(options.imageEndpoint!, { images }), values.length, options.imageEndpoint!);
    }
    const tensor = await image.tensorOf(i === 0 ? part : { ...part, name: `${found.name} from ${i * most}` }, ctx);
    const filled = text ? textInputs(plan, text, ['']) : {};
    const outputs = await ctx.infer({ [image.plan.input.name]: tensor, ...filled });
    const wanted = { count: values.length, batched: image.plan.batched };
    const { values: numbers, shape } = readRows(outputs, image.output.name, wanted);
    return rowsOf(poolPictures(numbers, shape, 'cls'));
  };
  return joined(await Promise.all(pieces(found.values, most).map(ask)));
}
