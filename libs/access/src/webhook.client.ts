import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { urlToHttpOptions } from 'node:url';
import { Inject, Injectable, Optional } from '@nestjs/common';
import { innerMessage, type WebhookPayload } from '@perch/contracts';
import { checkedLookup, checkHost, type HistogramMetric, Metrics, type Reach } from '@perch/platform';
import { type Sending, signatureOf } from './webhook.decide.ts';

export interface WebhookOptions {
  /** How far webhooks may reach; default `private`: link-local and reserved addresses are refused. */
  reach: Reach;
  /** Of one sending, all in all; default 10 s. */
  timeoutMs?: number;
}
export const WEBHOOK_OPTIONS = Symbol('webhook options');

/**
 * Sends one event to one address: a POST, signed, without following redirects. Of the answer the status alone is read,
 * so that nobody can use a webhook to look at what lies behind an address. Never throws.
 */
@Injectable()
export class WebhookClient {
  private readonly seconds: HistogramMetric<'outcome'>;

  constructor(
    metrics: Metrics,
    @Optional() @Inject(WEBHOOK_OPTIONS) private readonly options: WebhookOptions = { reach: 'private' },
  ) {
    this.seconds = metrics.histogram(
      'perch_webhook_request_seconds',
      'Duration of one request to a webhook by outcome.',
      ['outcome'],
    );
  }

  async send(to: { url: string; secret: string }, payload: WebhookPayload, signal?: AbortSignal): Promise<Sending> {
    const started = performance.now();
    const answer = await this.post(new URL(to.url), to.secret, payload, signal).then(
      (status) => ({ status, error: null }),
      (error: unknown) => ({ status: null, error: innerMessage(error).slice(0, 300) }),
    );
    const durationMs = performance.now() - started;
    this.seconds.observe({ outcome: answer.status === null ? 'no_answer' : 'answered' }, durationMs / 1_000);
    return { ...answer, durationMs: Math.round(durationMs) };
  }

  private post(url: URL, secret: string, payload: WebhookPayload, signal?: AbortSignal): Promise<number> {
    const { reach, timeoutMs = 10_000 } = this.options;
    const body = JSON.stringify(payload);
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'user-agent': 'perch',
      'x-perch-event': payload.type,
      'x-perch-delivery': payload.id,
      'x-perch-signature': signatureOf(secret, body, Math.floor(Date.now() / 1_000)),
    };
    return new Promise((resolve, reject) => {
      checkHost(url, reach);
      const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
      const lookup = checkedLookup(reach);
      const request = send({ ...urlToHttpOptions(url), method: 'POST', agent: false, lookup, headers });
      const timer = setTimeout(() => request.destroy(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
      const stop = () => request.destroy(new Error('stopped'));
      signal?.addEventListener('abort', stop, { once: true });
      request.on('response', (answer) => {
        resolve(answer.statusCode ?? 0);
        answer.destroy();
      });
      request.on('error', reject);
      request.on('close', () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', stop);
        reject(new Error('the connection ended without an answer')); // unless it was answered
      });
      request.end(body);
    });
  }
}
