import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { urlToHttpOptions } from 'node:url';
import { Injectable } from '@nestjs/common';
import { AppError, errorCodeOf, innerMessage } from '@perch/contracts';
import { checkedLookup, checkHost, type HistogramMetric, Metrics } from '@perch/platform';
import { readAnswer } from './provided.decide.ts';

/** Of one query, all in all. */
export const queryTimeoutMs = 5_000;
const mostBytes = 1_000_000;

/** Asks a Prometheus of the user's for one figure, without following redirects. */
@Injectable()
export class PrometheusClient {
  private readonly seconds: HistogramMetric<'outcome'>;

  constructor(metrics: Metrics) {
    this.seconds = metrics.histogram(
      'perch_provider_query_seconds',
      "Duration of one query of a user's Prometheus by outcome: ok, or the code of the error.",
      ['outcome'],
    );
  }

  /** `base`: where Prometheus listens. Throws `upstream`, `timeout` or `forbidden` (an address that is not called). */
  async figure(base: string, query: string, timeoutMs = queryTimeoutMs): Promise<number> {
    const started = performance.now();
    const done = (outcome: string) => this.seconds.observe({ outcome }, (performance.now() - started) / 1_000);
    try {
      const { status, text } = await this.ask(queryUrl(base, query), timeoutMs);
      const figure = readAnswer(status, parsed(text));
      done('ok');
      return figure;
    } catch (error) {
      done(errorCodeOf(error));
      throw error;
    }
  }

  private ask(url: URL, timeoutMs: number): Promise<{ status: number; text: string }> {
    checkHost(url, 'private');
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
    return new Promise((resolve, reject) => {
      const request = send({
        ...urlToHttpOptions(url),
        agent: false,
        lookup: checkedLookup('private'),
        headers: { accept: 'application/json', 'user-agent': 'perch' },
      });
      const late = new AppError('timeout', `it does not answer within ${timeoutMs} ms`);
      const timer = setTimeout(() => request.destroy(late), timeoutMs);
      request.on('response', (answer) => {
        const parts: Buffer[] = [];
        let size = 0;
        answer.on('data', (part: Buffer) => {
          size += part.length;
          parts.push(part);
          if (size > mostBytes) request.destroy(new AppError('upstream', `it answers with over ${mostBytes} bytes`));
        });
        answer.on('end', () =>
          resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(parts).toString('utf8') }),
        );
        answer.on('error', (error) => reject(connectFault(error)));
      });
      request.on('error', (error) => reject(connectFault(error)));
      request.on('close', () => {
        clearTimeout(timer);
        reject(new AppError('upstream', 'it closed the connection without an answer')); // unless it was answered
      });
      request.end();
    });
  }
}

/** Not what the system says of the connection, which may name hosts of the house; its code is enough. */
function connectFault(error: Error & { code?: string }): AppError {
  if (error instanceof AppError) return error;
  return new AppError('upstream', `it cannot be reached: ${error.code ?? innerMessage(error).slice(0, 100)}`, {
    cause: error,
  });
}

function queryUrl(base: string, query: string): URL {
  const url = new URL(base);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new AppError('invalid', `url: wants http or https, got ${url.protocol}`);
  url.pathname = `${url.pathname.replace(/\/$/, '')}/api/v1/query`;
  url.searchParams.set('query', query);
  return url;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
