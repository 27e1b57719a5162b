import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Batch, BatchWriter, parsedAt, valueAt } from './batch.ts';
import { FrameReader, frameOf, markFrame } from './frames.ts';
import type { Carried } from './wire.ts';

const tensor = (values: number[]) => ({ datatype: 'FP64' as const, shape: [values.length], bytes: new Uint8Array(Float64Array.from(values).buffer) }); // biome-ignore format: one row

describe('a batch', () => {
  it('gives back what was put in, numbers aligned, and keeps what was given even when that changes', () => {
    fc.assert(
      fc.property(fc.array(fc.array(fc.double(), { maxLength: 20 }), { maxLength: 20 }), (lists) => {
        const out = new BatchWriter<Carried>();
        const given = lists.map(tensor);
        for (const one of given) out.add(out.tensors({ x: one }));
        const wanted = given.map(({ bytes }) => [...bytes]);
        for (const { bytes } of given) bytes.fill(7);
        const { messages, bytes } = out.take();
        messages.forEach((message, place) => {
          const { x } = valueAt(bytes, message) as { x: { bytes: Uint8Array } };
          expect([...x.bytes]).toEqual(wanted[place]);
          expect(x.bytes.byteOffset % 8).toBe(0);
        });
      }),
    );
  });

  it.each([[undefined], [null], [3], ['text'], [{ a: [1, { b: null }] }], [[]], [{}]])('carries %j', (value) => {
    const out = new BatchWriter<Carried>();
    const carried = out.value(value);
    expect(parsedAt(out.take().bytes, carried)).toEqual(value);
  });

  it('does not take __proto__ for a name', () => {
    const rows = [['__proto__', 'FP64', [0], [0, 0]]] as never;
    const read = valueAt(new Uint8Array(8), { as: 'tensors', rows }) as object;
    expect(Object.getPrototypeOf(read)).toBe(Object.prototype);
  });
});

describe('batches on a pipe', () => {
  it('come out as they went in, however the pipe cuts them', () => {
    const batch = fc.record({
      messages: fc.array(fc.jsonValue(), { maxLength: 4 }),
      bytes: fc.uint8Array({ maxLength: 50 }),
    });
    fc.assert(
      fc.property(fc.array(batch, { maxLength: 6 }), fc.integer({ min: 1, max: 40 }), (batches, size) => {
        const whole = Buffer.concat(batches.flatMap((one) => [markFrame(7), ...frameOf(one)]));
        const read: Batch<unknown>[] = [];
        const marks: number[] = [];
        const reader = new FrameReader<unknown>(
          (one) => read.push(one),
          (call) => marks.push(call),
        );
        for (let at = 0; at < whole.length; at += size) reader.push(whole.subarray(at, at + size));
        const told = batches.map(({ messages, bytes }) => ({
          messages: JSON.parse(JSON.stringify(messages)),
          bytes: [...bytes],
        }));
        expect(read.map(({ messages, bytes }) => ({ messages, bytes: [...bytes] }))).toEqual(told);
        expect(marks).toEqual(batches.map(() => 7));
      }),
    );
  });

  it('a length that no batch has is refused', () => {
    const reader = new FrameReader<unknown>(() => undefined);
    expect(() => reader.push(Buffer.from([0, 0, 0, 128, 0, 0, 0, 0]))).toThrow('a batch of');
  });
});
