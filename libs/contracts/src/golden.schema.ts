import { z } from 'zod';
import { AppError } from './error.ts';
import { isHalfType, roundToHalf } from './half-number.ts';
import { parseWith } from './parse.ts';
import { dataType } from './tensor.schema.ts';

/** Files of a version that hold golden requests: `golden/<name>.json`. */
const goldenPath = /^golden\/([^/]+)\.json$/i;
export const isGoldenPath = (path: string): boolean => goldenPath.test(path);
export const goldenNameOf = (path: string): string => goldenPath.exec(path)?.[1] ?? path;
export const mostGoldenRequests = 64;
export const maxGoldenBytes = 4 * 1_048_576;

/** Numbers differ when |got − wanted| > absolute + relative · |wanted|; whole numbers, texts and truth values always when they are not equal. */
const tolerance = z.strictObject({
  absolute: z.number().min(0).default(1e-4),
  relative: z.number().min(0).default(1e-3),
});
export type GoldenTolerance = z.infer<typeof tolerance>;

const element = z.union([z.number(), z.string(), z.boolean()]);
const shape = z.array(z.number().int().min(0)).max(16);
/** Flat, row-major, or nested to the shape. */
const data = z.array(z.unknown());

const goldenTensor = z.object({ name: z.string().min(1).max(256), datatype: dataType, shape, data });

/**
 * One golden request: what the model server is asked (the JSON form of the Open Inference Protocol, where FP16 and BF16
 * are numbers as well), and what the model must answer. Outputs that are not named are not compared; a `shape` left out is
 * not compared.
 */
export const goldenRequest = z.strictObject({
  description: z.string().max(4_000).optional(),
  request: z.object({ inputs: z.array(goldenTensor).min(1).max(256) }).catchall(z.unknown()),
  outputs: z
    .array(
      z.strictObject({
        name: z.string().min(1).max(256),
        datatype: dataType.optional(),
        shape: shape.optional(),
        data,
        tolerance: tolerance.optional(),
      }),
    )
    .min(1)
    .max(256),
  tolerance: tolerance.prefault({}),
});
export type GoldenRequest = z.infer<typeof goldenRequest>;

/** Elements of flat or nested data, row-major. */
export const goldenElements = (values: readonly unknown[]): unknown[] =>
  values.flatMap((value) => (Array.isArray(value) ? goldenElements(value) : [value]));

const fitsInto = (datatype: string | undefined, value: unknown): boolean =>
  datatype === undefined ||
  !isHalfType(datatype) ||
  (typeof value === 'number' && Number.isFinite(roundToHalf(datatype, value)));

const count = (of: readonly number[]) => of.reduce((product, size) => product * size, 1);

/** Throws `invalid` that names the file and what is wrong in it. */
export function parseGolden(text: string, path: string): GoldenRequest {
  const refuse = (message: string) => new AppError('invalid', `${path}: ${message}`);
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw refuse(`is no JSON: ${(error as Error).message}`);
  }
  const golden = parseWith(goldenRequest, json, path);
  const kinds = { input: golden.request.inputs, output: golden.outputs };
  for (const [kind, tensors] of Object.entries(kinds)) {
    const names = tensors.map(({ name }) => name);
    const twice = names.find((name, at) => names.indexOf(name) !== at);
    if (twice !== undefined) throw refuse(`${kind} ${twice} stands there twice`);
    for (const tensor of tensors) {
      const elements = goldenElements(tensor.data);
      const odd = elements.find((value) => !element.safeParse(value).success);
      if (odd !== undefined)
        throw refuse(`${kind} ${tensor.name}: ${JSON.stringify(odd)} is no number, text or truth value`);
      if (tensor.shape && count(tensor.shape) !== elements.length)
        throw refuse(
          `${kind} ${tensor.name}: shape [${tensor.shape}] wants ${count(tensor.shape)} values, data has ${elements.length}`,
        );
      const { datatype } = tensor;
      const beyond = elements.find((value) => !fitsInto(datatype, value));
      if (beyond !== undefined)
        throw refuse(`${kind} ${tensor.name}: ${JSON.stringify(beyond)} is no number that ${datatype} can hold`);
    }
  }
  return golden;
}
