import { AppError } from '@perch/contracts/plain';
import type { TextOrPair } from '../contract.ts';
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

const halfPair = /[\ud800-\udfff]/u;
/** Half of a surrogate pair, as JSON's \ud800 can write it, is no character that a tokenizer could read. */
function checkText(text: unknown, place: string): void {
  if (typeof text !== 'string') throw new AppError('invalid', `${place} is ${kindOf(text)}, wanted a string`);
  if (halfPair.test(text))
    throw new AppError('invalid', `${place} is not valid Unicode: it holds half of a surrogate pair`);
}

function listOf(name: string, value: unknown): { texts: string[]; single: boolean } {
  if (typeof value !== 'string' && !Array.isArray(value))
    throw new AppError('invalid', `field "${name}" is ${kindOf(value)}, wanted a string or a list of strings`);
  if (typeof value === 'string') {
    checkText(value, `field "${name}"`);
    return { texts: [value], single: true };
  }
  for (const [i, text] of value.entries()) checkText(text, `${name}[${i}]`);
  return { texts: value as string[], single: false };
}

/** The text or texts of a body; throws `invalid` when there is none, too many, or something else than text. */
export function readTexts(
  body: unknown,
  field: string | undefined,
  [least, most]: [number, number],
): { texts: string[]; single: boolean } {
  const { name, value } = findField(body, field);
  const { texts, single } = listOf(name, value);
  if (texts.length < least || texts.length > most)
    throw new AppError(
      'invalid',
      `field "${name}" has ${texts.length} texts, wanted ${least === most ? `exactly ${least}` : `${least} to ${most}`}`,
    );
  return { texts, single };
}

/** Texts as `readTexts` does, each with its second one where the body has `pairField`: as many as there are texts. */
export function readTextsOrPairs(
  body: unknown,
  { textField, pairField }: { textField?: string | undefined; pairField: string },
  counts: [number, number],
): { texts: TextOrPair[]; single: boolean } {
  const { texts, single } = readTexts(body, textField, counts);
  if (!Object.hasOwn(body as object, pairField)) return { texts, single };
  const seconds = listOf(pairField, (body as Record<string, unknown>)[pairField]);
  if (seconds.single !== single || seconds.texts.length !== texts.length)
    throw new AppError(
      'invalid',
      `field "${pairField}" has ${seconds.single ? 'one text' : `a list of ${seconds.texts.length}`}, wanted ${single ? 'one text' : `a list of ${texts.length}`}, one for each text`,
    );
  return { texts: texts.map((text, i) => [text, seconds.texts[i]!] as const), single };
}
