import { AppError } from '@perch/contracts/plain';
import { kindOf } from '../json-body.ts';

const usualFields = ['image', 'images', 'inputs', 'input'];

export interface Found {
  name: string;
  /** One picture was sent, not a list. */
  single: boolean;
  values: unknown[];
}

const isFields = (body: unknown): body is Record<string, unknown> =>
  typeof body === 'object' && body !== null && !Array.isArray(body) && !Buffer.isBuffer(body);

/** The field of a body that holds pictures; absent: none of them is there. Throws `invalid` where two are. */
export function findImages(body: unknown, field: string | undefined): Found | undefined {
  if (Buffer.isBuffer(body)) return { name: 'the body', single: true, values: [body] };
  const wanted = field ?? 'image';
  if (!isFields(body))
    throw new AppError('invalid', `the body is ${kindOf(body)}, wanted {"${wanted}": "<base64>"} or a picture itself`);
  const names = (field ? [field] : usualFields).filter((name) => Object.hasOwn(body, name));
  if (names.length > 1) throw new AppError('invalid', `the body has ${names.join(' and ')}, wanted one of them`);
  if (names.length === 0) return undefined;
  const value = body[names[0]!];
  const single = !Array.isArray(value);
  return { name: `field "${names[0]}"`, single, values: single ? [value] : value };
}

/** Pictures of a body: at least and at most so many. Throws `invalid`. */
export function readImages(body: unknown, field: string | undefined, [least, most]: [number, number]): Found {
  const found = findImages(body, field);
  const wanted = field ?? 'image';
  if (!found)
    throw new AppError('invalid', `the body has no field "${wanted}", wanted {"${wanted}": "<base64>"}, a list, a file or a picture itself`); // biome-ignore format: one sentence
  const count = found.values.length;
  if (count < least || count > most)
    throw new AppError(
      'invalid',
      `${found.name} has ${count} pictures, wanted ${least === most ? `exactly ${least}` : `${least} to ${most}`}`,
    );
  return found;
}
