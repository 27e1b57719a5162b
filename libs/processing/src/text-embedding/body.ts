import { AppError } from '@perch/contracts';
import { kindOf } from '../json-body.ts';

const usualFields = ['text', 'inputs', 'input'];

function findField(body: unknown, field: string | undefined): { name: string; value: unknown } {
  if (Buffer.isBuffer(body))
    throw new AppError('unsupported_media_type', 'the body is not JSON, wanted application/json');
  const wanted = `{"${field ?? 'text'}": "…"} or {"${field ?? 'text'}": ["…", "…"]}`;
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw new AppError('invalid', `the body is ${kindOf(body)}, wanted ${wanted}`);
  const names = (field ? [field] : usualFields).filter((name) => Object.hasOwn(body, name));
  if (names.length === 0) throw new AppError('invalid', `the body has no field "${field ?? 'text'}", wanted ${wanted}`);
  if (names.length > 1) throw new AppError('invalid', `the body has ${names.join(' and ')}, wanted one of them`);
  return { name: names[0]!, value: (body as Record<string, unknown>)[names[0]!] };
}

/** The text or texts of a body; throws `invalid` when there is none, too many, or something else than text. */
export function readTexts(
  body: unknown,
  field: string | undefined,
  [least, most]: [number, number],
): { texts: string[]; single: boolean } {
  const { name, value } = findField(body, field);
  const single = typeof value === 'string';
  const texts: unknown[] = single ? [value] : Array.isArray(value) ? value : [];
  if (!single && !Array.isArray(value))
    throw new AppError('invalid', `field "${name}" is ${kindOf(value)}, wanted a string or a list of strings`);
  for (const [i, text] of texts.entries())
    if (typeof text !== 'string') throw new AppError('invalid', `${name}[${i}] is ${kindOf(text)}, wanted a string`);
  if (texts.length < least || texts.length > most)
    throw new AppError(
      'invalid',
      `field "${name}" has ${texts.length} texts, wanted ${least === most ? `exactly ${least}` : `${least} to ${most}`}`,
    );
  return { texts: texts as string[], single };
}
