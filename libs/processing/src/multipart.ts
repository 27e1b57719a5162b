import { AppError } from '@perch/contracts/plain';

export const isMultipart = (contentType: string | undefined): contentType is string =>
  contentType !== undefined && /^\s*multipart\/form-data\s*;/i.test(contentType);

const mostParts = 1_000;

/**
 * The one object of a `multipart/form-data` body (RFC 7578): a field is a string, a file is a Buffer, a file of type
 * application/json the value that it holds; what is given several times is a list. Throws `invalid`.
 */
export async function readMultipart(body: Buffer, contentType: string): Promise<Record<string, unknown>> {
  const form = await formOf(body, contentType);
  const fields = new Map<string, unknown[]>();
  let parts = 0;
  for (const [name, value] of form) {
    parts += 1;
    if (parts > mostParts) throw new AppError('invalid', `the multipart body has more than ${mostParts} parts`);
    const list = fields.get(name) ?? [];
    list.push(typeof value === 'string' ? value : await fileValue(name, value));
    fields.set(name, list);
  }
  return Object.fromEntries([...fields].map(([name, values]) => [name, values.length === 1 ? values[0] : values]));
}

async function formOf(body: Buffer, contentType: string) {
  try {
    return await new Response(new Uint8Array(body), { headers: { 'content-type': contentType } }).formData();
  } catch {
    throw new AppError(
      'invalid',
      'the multipart body cannot be read, wanted parts between lines of the boundary that its content type names',
    );
  }
}

async function fileValue(name: string, file: Blob): Promise<unknown> {
  const bytes = Buffer.from(await file.arrayBuffer());
  if (!/^application\/([\w.+-]+\+)?json\b/i.test(file.type)) return bytes;
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    throw new AppError('invalid', `part "${name.slice(0, 64)}" is not valid JSON, as its content type says`);
  }
}
