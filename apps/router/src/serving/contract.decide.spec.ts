import type { TensorSpec } from '@perch/contracts';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Asked, contractFault, type SeenOutput } from './contract.decide.ts';

const floats = (...values: number[]) => new Uint8Array(Float32Array.from(values).buffer);
const texts = (...values: string[]) =>
  Buffer.concat(
    values.map((value) => {
      const length = Buffer.alloc(4);
      length.writeUInt32LE(Buffer.byteLength(value));
      return Buffer.concat([length, Buffer.from(value)]);
    }),
  );
const y = (fields: Partial<SeenOutput> = {}): SeenOutput => ({
  name: 'y',
  datatype: 'FP32',
  shape: [1, 4],
  bytes: floats(1, 2, 3, 4),
  ...fields,
});
const labels: SeenOutput = { name: 'labels', datatype: 'BYTES', shape: [2], bytes: texts('cat', '') };
const declared: TensorSpec[] = [{ name: 'y', datatype: 'FP32', shape: [-1, 4] }];
const both: TensorSpec[] = [...declared, { name: 'labels', datatype: 'BYTES', shape: [-1] }];
const asked = (some: boolean, classes: boolean): Asked => ({ some: () => some, classes: () => classes });
const neverAsked: Asked = {
  some: () => {
    throw new Error('looked at a request whose reply is right');
  },
  classes: () => {
    throw new Error('looked at a request whose reply is right');
  },
};

describe('a reply held against what its model declares', () => {
  it.each([
    ['as declared', [y()], declared, undefined],
    ['any size where −1 stands', [y({ shape: [2, 4], bytes: floats(1, 2, 3, 4, 5, 6, 7, 8) })], declared, undefined],
    ['in another order', [labels, y()], both, undefined],
    ['as JSON', [y({ bytes: undefined, values: { count: 4, broken: false } })], declared, undefined],
    ['in shared memory', [y({ bytes: undefined })], declared, undefined],
    ['no signature known', [y({ name: 'z', datatype: 'FP64', bytes: new Uint8Array(32) })], [], undefined],
    ['−∞, as masked logits are', [y({ bytes: floats(1, Number.NEGATIVE_INFINITY, 3, 4) })], declared, undefined],
    ['no output', [], declared, 'empty'],
    ['no output, none declared', [], [], 'empty'],
    ['an output without bytes', [y({ bytes: new Uint8Array(0) })], declared, 'empty'],
    ['an output without elements', [y({ shape: [0, 4], bytes: new Uint8Array(0) })], declared, 'empty'],
    ['JSON without values', [y({ bytes: undefined, values: { count: 0, broken: false } })], declared, 'empty'],
    ['no text at all', [y(), { ...labels, shape: [0], bytes: texts() }], both, 'empty'],
    ['one output of two', [y()], both, 'missing'],
    ['an output nobody declared', [y({ name: 'z' })], declared, 'unknown'],
    ['another type', [y({ datatype: 'FP64', bytes: new Uint8Array(32) })], declared, 'type'],
    ['a type nobody knows', [y({ datatype: 'FP8' })], [], 'type'],
    ['another size', [y({ shape: [1, 5] })], declared, 'shape'],
    ['a dimension less', [y({ shape: [4] })], declared, 'shape'],
    ['fewer bytes than its shape wants', [y({ bytes: floats(1, 2, 3) })], declared, 'shape'],
    ['half an element', [y({ bytes: new Uint8Array(15) })], declared, 'shape'],
    ['fewer JSON values', [y({ bytes: undefined, values: { count: 3, broken: false } })], declared, 'shape'],
    ['text that ends beyond itself', [y(), { ...labels, bytes: texts('cat', 'dog').subarray(0, 12) }], both, 'shape'],
    ['NaN', [y({ bytes: floats(1, Number.NaN, 3, 4) })], declared, 'number'],
    ['+∞', [y({ bytes: floats(Number.POSITIVE_INFINITY, 2, 3, 4) })], declared, 'number'],
    ['NaN in JSON', [y({ bytes: undefined, values: { count: 4, broken: true } })], declared, 'number'],
    ['NaN, no signature known', [y({ bytes: floats(1, 2, 3, Number.NaN) })], [], 'number'],
  ] as const)('%s', (_what, outputs, specs, fault) => {
    expect(contractFault(outputs, specs)).toBe(fault);
    if (!fault) expect(contractFault(outputs, specs, neverAsked)).toBeUndefined();
  });

  it('asks the request before it finds an output missing or of another type', () => {
    expect(contractFault([y()], both, asked(true, false))).toBeUndefined();
    expect(contractFault([y()], both, asked(false, true))).toBe('missing');
    const classes: SeenOutput = { name: 'y', datatype: 'BYTES', shape: [1, 2], bytes: texts('0.9:3', '0.1:7') };
    expect(contractFault([classes], declared, asked(true, true))).toBeUndefined();
    expect(contractFault([classes], declared, asked(true, false))).toBe('type');
  });

  it('finds a fault, or none, in whatever came, and never throws', () => {
    const anything = fc.record({
      name: fc.constantFrom('y', 'labels', 'z'),
      datatype: fc.constantFrom('FP32', 'FP16', 'BF16', 'FP64', 'BYTES', 'INT64', 'BOOL', 'FP8', '', 'toString'),
      shape: fc.oneof(fc.array(fc.integer({ min: -2, max: 9 }), { maxLength: 3 }), fc.constant(undefined)),
      bytes: fc.option(fc.uint8Array({ maxLength: 40 }), { nil: undefined }),
      values: fc.option(fc.record({ count: fc.nat(9), broken: fc.boolean() }), { nil: undefined }),
    });
    fc.assert(
      fc.property(fc.array(anything, { maxLength: 3 }), fc.constantFrom(declared, both, []), (outputs, specs) => {
        const fault = contractFault(outputs as SeenOutput[], specs, asked(false, false));
        const right = outputs.length > 0 && outputs.every(({ shape }) => shape !== undefined);
        if (!right) expect(fault).toBeDefined();
      }),
    );
  });

  it('does not miss an optional output', () => {
    const specs: TensorSpec[] = [...declared, { name: 'more', datatype: 'FP32', shape: [-1], optional: true }];
    expect(contractFault([y()], specs)).toBeUndefined();
  });
});
