import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { AppError, type ModuleFixture } from '@perch/contracts';

export interface FixtureBody {
  body: Buffer;
  contentType: string;
}

const isJson = (contentType: string) => /^application\/([\w.+-]*\+)?json\b/i.test(contentType);

/** A fixture as the request that it stands for; `file`: the fixture's own place. */
export async function fixtureBody(fixture: ModuleFixture, file: string): Promise<FixtureBody> {
  const { body, contentType, files = {} } = fixture;
  const read = (name: string) =>
    readFile(join(dirname(file), name)).catch(() => {
      throw new AppError('not_found', `${file}: there is no file ${name} beside it`);
    });
  const names = Object.entries(files);
  if (names.length > 0 && (contentType === undefined || /^multipart\//i.test(contentType)))
    return multipart(body, names, read);
  if (names.length > 0) {
    if (names.length > 1)
      throw new AppError('invalid', `${file}: a body of ${contentType} is one file, and files names ${names.length}`);
    return { body: await read(names[0]![1]), contentType: contentType as string };
  }
  if (contentType === undefined || isJson(contentType))
    return { body: Buffer.from(JSON.stringify(body)), contentType: contentType ?? 'application/json' };
  if (typeof body !== 'string')
    throw new AppError('invalid', `${file}: a body of ${contentType} is a string, or one of files`);
  return { body: Buffer.from(body), contentType };
}

async function multipart(
  fields: unknown,
  files: readonly [string, string][],
  read: (name: string) => Promise<Buffer>,
): Promise<FixtureBody> {
  const boundary = `perch-${randomUUID()}`;
  const parts: Buffer[] = [];
  const part = (headers: string, bytes: Buffer) =>
    parts.push(Buffer.from(`--${boundary}\r\n${headers}\r\n\r\n`), bytes, Buffer.from('\r\n'));
  for (const [name, value] of Object.entries((fields ?? {}) as Record<string, unknown>)) {
    const disposition = `content-disposition: form-data; name="${name}"`;
    if (typeof value === 'string') part(disposition, Buffer.from(value));
    else
      part(
        `${disposition}; filename="${name}.json"\r\ncontent-type: application/json`,
        Buffer.from(JSON.stringify(value)),
      );
  }
  for (const [name, path] of files)
    part(
      `content-disposition: form-data; name="${name}"; filename="${basename(path)}"\r\ncontent-type: application/octet-stream`,
      await read(path),
    );
  parts.push(Buffer.from(`--${boundary}--\r\n`));
  return { body: Buffer.concat(parts), contentType: `multipart/form-data; boundary=${boundary}` };
}
