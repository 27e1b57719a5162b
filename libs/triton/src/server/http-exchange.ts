import type { IncomingMessage, ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import { deflate, gunzip, gzip, inflate } from 'node:zlib';
import { httpStatus, ServingFault } from './serving-fault.ts';

const unpack = { gzip: promisify(gunzip), deflate: promisify(inflate) };
const pack = { gzip: promisify(gzip), deflate: promisify(deflate) };
type Coding = keyof typeof pack;

/** A status that Triton's table of codes does not hold. */
export class StatusFault extends Error {
  readonly status: number;
  constructor(status: number, text: string) {
    super(text);
    this.status = status;
  }
}

/** The body as one buffer; of a known length it is read into place. Throws 413 beyond `maxBytes`. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const announced = Number(request.headers['content-length'] ?? Number.NaN);
  if (announced > maxBytes) throw new StatusFault(413, `the body is ${announced} bytes, over the limit of ${maxBytes}`);
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) throw new StatusFault(413, `the body is over the limit of ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  const body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size);
  const coding = request.headers['content-encoding'];
  if (coding === undefined || coding === 'identity') return body;
  const unpacked = unpack[coding as Coding];
  if (!unpacked) throw new StatusFault(415, `content-encoding '${coding}' is not supported; use gzip or deflate`);
  try {
    return await unpacked(body, { maxOutputLength: maxBytes });
  } catch {
    throw new ServingFault(
      'invalid_argument',
      `the body is no valid ${coding} or unpacks to more than ${maxBytes} bytes`,
    );
  }
}

export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  sendText(response, status, JSON.stringify(value));
}

export function sendText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) });
  response.end(text);
}

export function sendEmpty(response: ServerResponse, status: number): void {
  response.writeHead(status, { 'Content-Length': 0, 'Content-Type': 'text/plain' });
  response.end();
}

export function sendFault(response: ServerResponse, error: unknown, fault: ServingFault): void {
  const status = error instanceof StatusFault ? error.status : httpStatus[fault.serving];
  sendJson(response, status, { error: error instanceof StatusFault ? error.message : fault.message });
}

/** The coding a client takes for the answer, if any. */
export function acceptedCoding(request: IncomingMessage): Coding | undefined {
  const accepted = String(request.headers['accept-encoding'] ?? '');
  return accepted.includes('gzip') ? 'gzip' : accepted.includes('deflate') ? 'deflate' : undefined;
}

/** Sends an infer answer: JSON, then the binary parts; packed where the client asked for it. */
export async function sendInfer(
  response: ServerResponse,
  answer: { text: string; binary: Uint8Array[] },
  coding: Coding | undefined,
): Promise<void> {
  const headers: Record<string, string | number> = { 'Content-Type': 'application/json' };
  const head = Buffer.from(answer.text);
  if (answer.binary.length > 0) {
    headers['Content-Type'] = 'application/octet-stream';
    headers['Inference-Header-Content-Length'] = head.length;
  }
  let body = answer.binary.length === 0 ? head : Buffer.concat([head, ...answer.binary]);
  if (coding) {
    body = await pack[coding](body);
    headers['Content-Encoding'] = coding;
  }
  headers['Content-Length'] = body.length;
  response.writeHead(200, headers);
  response.end(body);
}
