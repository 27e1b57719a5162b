import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Readable } from 'node:stream';
import { urlToHttpOptions } from 'node:url';
import { AppError, innerMessage } from '@perch/contracts';
import { checkedLookup, checkHost, type Reach } from '@perch/platform';

export interface FetchLimits {
  reach: Reach;
  /** Until an answer begins, and between two pieces of it. */
  idleMs: number;
}
export interface Fetched {
  body: Readable;
  /** As announced; undefined: not announced. */
  sizeBytes: number | undefined;
}

const mostRedirects = 5;

/** URL without user, password and query: these may hold secrets, and it is shown, logged and kept. */
export const shownUrl = (url: URL): string => `${url.protocol}//${url.host}${url.pathname}`;

/**
 * GET of an http(s) URL, redirects followed. The address is judged when the connection is made, so a name that answers
 * differently the second time gains nothing. `forbidden`, `not_found`, `upstream` or `timeout` name the URL.
 */
export async function fetchUrl(start: URL, limits: FetchLimits): Promise<Fetched> {
  let url = start;
  for (let hop = 0; hop <= mostRedirects; hop += 1) {
    const answer = await ask(url, limits);
    const status = answer.statusCode ?? 0;
    if (status === 200) {
      const length = Number(answer.headers['content-length']);
      return { body: answer, sizeBytes: Number.isSafeInteger(length) ? length : undefined };
    }
    answer.destroy();
    const onward = [301, 302, 303, 307, 308].includes(status) ? answer.headers.location : undefined;
    if (!onward) throw statusFault(url, status);
    url = nextUrl(url, onward);
  }
  throw new AppError('upstream', `URL ${shownUrl(start)} redirects over ${mostRedirects} times`);
}

function nextUrl(from: URL, location: string): URL {
  const next = URL.canParse(location, from.href) ? new URL(location, from) : undefined;
  if (next?.protocol === 'https:' || (next?.protocol === 'http:' && from.protocol === 'http:')) return next;
  throw new AppError('upstream', `URL ${shownUrl(from)} redirects to something that is not ${from.protocol}`);
}

const statusFault = (url: URL, status: number): AppError =>
  new AppError(
    status === 404 || status === 410 ? 'not_found' : 'upstream',
    `URL ${shownUrl(url)} answers ${status}, wanted 200; check that it can be read without a login`,
  );

function ask(url: URL, { reach, idleMs }: FetchLimits): Promise<IncomingMessage> {
  checkHost(url, reach);
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const late = () => new AppError('timeout', `URL ${shownUrl(url)} sends nothing for ${idleMs} ms`);
    const options = {
      ...urlToHttpOptions(url),
      lookup: checkedLookup(reach),
      headers: { 'accept-encoding': 'identity' },
    };
    const request = send(options, (answer) => {
      answer.setTimeout(idleMs, () => answer.destroy(late()));
      resolve(answer);
    });
    request.setTimeout(idleMs, () => request.destroy(late()));
    request.on('error', (error) => reject(error instanceof AppError ? error : connectFault(url, error)));
    request.end();
  });
}

const connectFault = (url: URL, cause: Error): AppError =>
  new AppError('upstream', `URL ${shownUrl(url)} cannot be fetched: ${innerMessage(cause).slice(0, 200)}`, { cause });
