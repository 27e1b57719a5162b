import { AppError } from '@perch/contracts/plain';
import type { AnyModule } from './contract.ts';
import { kindOf, parseJsonBody } from './json-body.ts';
import { isMultipart, readMultipart } from './multipart.ts';

/** Absent counts as JSON, as `curl -d` users expect; curl's own default is taken as JSON for the same reason. */
const isJson = (contentType: string | undefined): boolean =>
  !contentType ||
  /^\s*(application\/(json|[\w.+-]*\+json|x-www-form-urlencoded)|text\/(json|plain))\s*(;|$)/i.test(contentType);

const isPlainObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !Buffer.isBuffer(value);

/** What `preprocess` of a module is given for a request's body; a promise for multipart alone. */
export function readBody(
  { body: kind, defaults }: Pick<AnyModule, 'body' | 'defaults'>,
  body: Buffer,
  contentType: string | undefined,
): unknown {
  if (isJson(contentType)) {
    if (kind === 'json-bytes') return body;
    const value = parseJsonBody(body);
    return defaults !== undefined && isPlainObject(value) ? { ...defaults, ...value } : value;
  }
  if (kind === 'json-bytes')
    throw new AppError('unsupported_media_type', `content type ${contentType}, wanted application/json`);
  if (isMultipart(contentType)) return readMultipart(body, contentType).then((fields) => ({ ...defaults, ...fields }));
  return body;
}

const base64 = /^[A-Za-z0-9+/]*={0,2}$/;

/**
 * Bytes as requests carry them: a Buffer (multipart, or a body that is no JSON), or in JSON a base64 string, a `data:` URL
 * or `{"b64": "…"}`. Throws `invalid` that names `thing`.
 */
export function bytesOf(value: unknown, thing: string): Buffer {
  if (Buffer.isBuffer(value)) return value;
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  const text = isPlainObject(value) ? value['b64'] : value;
  if (typeof text !== 'string' || text === '')
    throw new AppError('invalid', `${thing} is ${kindOf(value)}, wanted bytes: base64 text, a data: URL or a file`);
  const plain = text.startsWith('data:') ? text.slice(text.indexOf(',') + 1) : text;
  if (!base64.test(plain.replace(/[\r\n]/g, ''))) throw new AppError('invalid', `${thing} is not valid base64`);
  return Buffer.from(plain, 'base64');
}
