import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ChunkedBody } from './chunked-body.ts';
import { parseReplyHead } from './reply-head.ts';
import { type RawReply, ReplyReader } from './reply-reader.ts';

/** Feeds the bytes in the pieces given by the cuts, each in a buffer that is overwritten afterwards. */
function feed(reader: ReplyReader, bytes: Buffer, cuts: number[]): RawReply[] {
  const replies: RawReply[] = [];
  const edges = [...new Set([...cuts.map((cut) => cut % (bytes.length + 1)), 0, bytes.length])].sort((a, b) => a - b);
  for (let i = 1; i < edges.length; i += 1) {
    const piece = Buffer.from(bytes.subarray(edges[i - 1], edges[i]));
    const reply = reader.take(piece, piece.length);
    piece.fill(0);
    if (reply) replies.push(reply);
  }
  return replies;
}

const chunked = (body: Buffer, sizes: number[]): Buffer => {
  const pieces: Buffer[] = [];
  let at = 0;
  for (const size of sizes) {
    if (at >= body.length) break;
    const part = body.subarray(at, at + 1 + (size % 50));
    at += part.length;
    pieces.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n'));
  }
  if (at < body.length) {
    const rest = body.subarray(at);
    pieces.push(Buffer.from(`${rest.length.toString(16)}\r\n`), rest, Buffer.from('\r\n'));
  }
  return Buffer.concat([...pieces, Buffer.from('0\r\n\r\n')]);
};

const cuts = fc.array(fc.nat(2_000), { maxLength: 12 });
const bytes = fc.uint8Array({ maxLength: 400 }).map((array) => Buffer.from(array));

describe('ReplyReader', () => {
  it('reads a reply of known length whatever pieces it comes in, its tensors on an 8-byte boundary', () => {
    fc.assert(
      fc.property(bytes, cuts, fc.nat(300), (body, at, header) => {
        const headerLength = Math.min(header, body.length);
        const head = `HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nInference-Header-Content-Length: ${headerLength}\r\nContent-Length: ${body.length}\r\n\r\n`;
        const reader = new ReplyReader(10_000);
        const reply = Buffer.concat([Buffer.from(head), body]);
        for (let turn = 0; turn < 2; turn += 1) {
          const [got, ...more] = feed(reader, reply, at);
          expect(more).toEqual([]);
          expect(got!.body.equals(body)).toBe(true);
          expect(got!.head).toMatchObject({ status: 200, headerLength, keepAlive: true });
          expect((got!.body.byteOffset + headerLength) % 8).toBe(0);
        }
      }),
    );
  });

  it('reads a chunked reply whatever its chunks and pieces', () => {
    fc.assert(
      fc.property(bytes, cuts, fc.array(fc.nat(100), { maxLength: 6 }), (body, at, sizes) => {
        const reply = Buffer.concat([
          Buffer.from('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'),
          chunked(body, sizes),
        ]);
        const [got] = feed(new ReplyReader(10_000), reply, at);
        expect(got!.body.equals(body)).toBe(true);
      }),
    );
  });

  it('reads a reply that ends with its connection, and passes over 100 Continue', () => {
    const reader = new ReplyReader(100);
    expect(feed(reader, Buffer.from('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 500 Oh\r\n\r\nwords'), [30])).toEqual([]);
    expect(reader.end()).toMatchObject({ head: { status: 500, keepAlive: false }, body: Buffer.from('words') });
    expect(new ReplyReader(100).end()).toBeUndefined();
  });

  it.each([
    ['no HTTP', 'SSH-2.0-OpenSSH\r\n\r\n'],
    ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n'],
    ['a length and chunks', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n'],
    ['a length that is none', 'HTTP/1.1 200 OK\r\nContent-Length: 0x10\r\n\r\n'],
    ['another coding', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n'],
    ['bytes behind the end', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab'],
    ['a body beyond the limit', 'HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n'],
    ['an endless head', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(70_000)}`],
    ['a bad chunk size', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n'],
  ])('refuses %s', (_what, text) => {
    expect(() => feed(new ReplyReader(100), Buffer.from(text), [])).toThrow();
  });
});

describe('ChunkedBody', () => {
  it.each(['5 \r\n', '5;ext=1\r\n', '\r\n', '123456789\r\n', '5\nhello', '1\r\nab\r\n', '0\r\nX: 1\n\r\n', '-1\r\n'])(
    'refuses %j',
    (text) => {
      const bytes = Buffer.from(text);
      expect(() => new ChunkedBody().take(bytes, 0, bytes.length, () => undefined)).toThrow();
    },
  );
  it('stops behind its end and takes trailers', () => {
    const bytes = Buffer.from('1\r\na\r\n0\r\nX: y\r\n\r\nGET /');
    const chunks = new ChunkedBody();
    expect([chunks.take(bytes, 0, bytes.length, () => undefined), chunks.done]).toEqual([bytes.length - 5, true]);
  });
});

it('reads the headers it needs in any case', () => {
  expect(
    parseReplyHead(
      'HTTP/1.1 503 Service Unavailable\r\nCONTENT-LENGTH: 7\r\ncontent-type: text/plain\r\nConnection: close',
    ),
  ).toEqual({
    status: 503,
    contentLength: 7,
    chunked: false,
    keepAlive: false,
    contentType: 'text/plain',
    headerLength: undefined,
  });
});
