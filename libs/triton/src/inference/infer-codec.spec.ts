import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeHttpResponse, encodeHttpRequest, encodeHttpResponse, type InferRequest } from '../wire/index.ts';
import { InferCodec } from './infer-codec.ts';
import { parseReplyHead } from './reply-head.ts';

const tensor = fc
  .record({ name: fc.string({ minLength: 1, maxLength: 6 }), rows: fc.integer({ min: 1, max: 3 }), seed: fc.nat(255) })
  .map(({ name, rows, seed }) => ({
    name,
    datatype: 'FP32',
    shape: [rows, 2],
    bytes: new Uint8Array(rows * 8).fill(seed),
  }));
const request: fc.Arbitrary<InferRequest> = fc.record(
  {
    modelName: fc.constantFrom('m', 'n'),
    inputs: fc.array(tensor, { maxLength: 3 }),
    id: fc.string({ maxLength: 4 }),
    parameters: fc.constant({ priority: 1 }),
    outputs: fc.constant([{ name: 'y' }]),
  },
  { requiredKeys: ['modelName', 'inputs'] },
);
const reply = (body: Buffer, headerLength: number) => ({
  head: { ...parseReplyHead('HTTP/1.1 200 OK'), headerLength },
  body,
  sent: true,
});

describe('InferCodec', () => {
  it('writes the same as the plain codec, however many requests it has seen', () => {
    fc.assert(
      fc.property(fc.array(request, { minLength: 1, maxLength: 12 }), (requests) => {
        const codec = new InferCodec();
        for (const one of requests) {
          const { parts, sizeBytes } = codec.encode('host:1', one);
          const whole = Buffer.concat(parts);
          const plain = encodeHttpRequest(one);
          expect(whole.length).toBe(sizeBytes);
          const head = whole.indexOf('\r\n\r\n') + 4;
          expect(whole.toString('latin1', 0, head)).toContain(`Content-Length: ${plain.sizeBytes}\r\n`);
          expect(whole.toString('latin1', 0, head)).toContain(
            `Inference-Header-Content-Length: ${plain.headerLength}\r\n`,
          );
          expect(whole.subarray(head).equals(Buffer.concat(plain.parts))).toBe(true);
        }
      }),
    );
  });

  const asked = { modelName: 'm', inputs: [] };

  it('reads the same as the plain codec, however many replies it has seen', () => {
    fc.assert(
      fc.property(fc.array(fc.array(tensor, { maxLength: 3 }), { minLength: 1, maxLength: 12 }), (replies) => {
        const codec = new InferCodec();
        for (const outputs of replies) {
          const body = encodeHttpResponse({ modelName: 'm', modelVersion: '1', outputs });
          const bytes = Buffer.concat(body.parts);
          expect(codec.decode(asked, reply(bytes, body.headerLength))).toEqual(
            decodeHttpResponse(bytes, body.headerLength),
          );
        }
      }),
    );
  });

  it('says upstream for a reply that is not what the protocol says', () => {
    const codec = new InferCodec();
    expect(() => codec.decode(asked, reply(Buffer.from('{"outputs": ['), 13))).toThrow(/not JSON/);
  });
});
