import { isUtf8 } from 'node:buffer';
import { AppError } from '@perch/contracts/plain';

/** Parses a JSON body. Throws `invalid` with the place of the fault, never with the body's text. */
export function parseJsonBody(body: Buffer): unknown {
  if (body.length === 0) throw new AppError('invalid', 'the body is empty, wanted JSON');
  if (!isUtf8(body)) throw new AppError('invalid', 'the body is not valid UTF-8, wanted JSON in UTF-8');
  try {
    return JSON.parse(body.toString('utf8'));
  } catch (error) {
    const place = /position (\d+)/.exec((error as Error).message)?.[1];
    throw new AppError('invalid', `the body is not valid JSON${place ? ` (at character ${place})` : ''}`);
  }
}

/** How a value is named in a message: its kind, never its content. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
