import { readFile } from 'node:fs/promises';
import { AppError, type ErrorCode } from '@perch/contracts';
import type { RawAnswer } from '../admin.client.ts';
import { parseDuration } from '../duration.ts';
import { parsePairs } from '../reference.ts';
import type { Options, Run } from '../verb.ts';

const codeOf: Record<number, ErrorCode> = {
  400: 'invalid', 401: 'unauthenticated', 403: 'forbidden', 404: 'not_found', 413: 'too_large', 415: 'unsupported_media_type',
  429: 'rate_limited', 502: 'upstream', 503: 'unavailable', 504: 'timeout',
}; // biome-ignore format: one table

export async function bodyOf(options: Options, place: string | undefined): Promise<Buffer> {
  const sources = [options['json'], options['file'], place].filter((source) => source !== undefined);
  if (sources.length !== 1)
    throw new AppError('invalid', "wants one body: --json '{…}', --file request.json, or - for the standard input");
  if (options['json'] !== undefined) return Buffer.from(options['json']);
  const file = (options['file'] ?? place) as string;
  if (file !== '-')
    return readFile(file).catch((error: NodeJS.ErrnoException) => {
      throw new AppError('not_found', `--file ${file}: ${error.code === 'ENOENT' ? 'no such file' : error.message}`);
    });
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** The reply's body is the result: JSON as it came, so that `| jq` works; which version answered is said on a terminal. */
export const run: Run = async (invocation, [name, second], options) => {
  const version = second === '-' ? undefined : second;
  const body = await bodyOf(options, second === '-' ? '-' : undefined);
  const client = await invocation.admin(options['router']);
  const timeoutMs = parseDuration(options['timeout'] ?? '30s', '--timeout');
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    ...parsePairs(options['header'], '--header'),
  };
  if (version !== undefined) headers['x-perch-version'] = version;
  const answer = await client.serve(`/serve/${name}`, body, headers, timeoutMs);
  if (answer.status >= 300) throw serveError(answer, name as string);
  invocation.hint(
    `version ${answer.headers['x-perch-version'] ?? '?'}, request ${answer.headers['x-request-id'] ?? '?'}`,
  );
  const text = answer.body.toString('utf8');
  const value = parsed(text);
  return { value, text: () => text };
};

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export function serveError(answer: RawAnswer, name: string): AppError {
  const value = parsed(answer.body.toString('utf8'));
  const inner = (value as { error?: { message?: string; requestId?: string } } | null)?.error;
  const words = inner?.message ?? String(answer.body).slice(0, 300);
  const code = codeOf[answer.status] ?? (answer.status < 500 ? 'invalid' : 'internal');
  return new AppError(code, `endpoint ${name} answered ${answer.status}: ${words}`, {
    details: { requestId: inner?.requestId },
  });
}
