import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseDims, parseType, planTensors, wordsOf } from './tensor.plan.ts';

describe('dimensions as ClearML lines give them', () => {
  it.each<[string[], number[][]]>([
    [[], []],
    [['1', '28', '28'], [[1, 28, 28]]],
    [['-1', '10'], [[-1, 10]]],
    [['[1,28,28]'], [[1, 28, 28]]],
    [['[-1, -1]', '[-1, -1]', '[-1, -1]'], [[-1, -1], [-1, -1], [-1, -1]]],
    [['[-1]', '[-1]'], [[-1], [-1]]],
    [['1', '28', '28', '[3,224]'], [[1, 28, 28], [3, 224]]],
    [['[3,224]', '1', '28'], [[3, 224], [1, 28]]],
    [['[[1,28,28],[3,224]]'], [[1, 28, 28], [3, 224]]],
    [['[1,', '28,', '28]'], [[1, 28, 28]]],
    [['"[1,28]"', "'[3,224]'"], [[1, 28], [3, 224]]],
    [['\\"[1,28]\\"'], [[1, 28]]],
    [['784'], [[784]]],
    [['1,28,28'], [[1, 28, 28]]],
  ])('%j is %j', (values, dims) => expect(parseDims(values, '--input-size')).toEqual(dims)); // biome-ignore format: rows
  it.each([[['1', 'x']], [['[1,2']], [['1]']], [['1.5']], [['{1}']]])('refuses %j, naming the flag', (values) => {
    expect(() => parseDims(values, '--input-size')).toThrow(/^--input-size: /);
  });
  it('reads back whatever is written as lists', () => {
    const dims = fc.array(fc.integer({ min: -1, max: 4096 }), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(fc.array(dims, { minLength: 1, maxLength: 4 }), (tensors) => {
        expect(
          parseDims(
            tensors.map((one) => JSON.stringify(one)),
            '--input-size',
          ),
        ).toEqual(tensors);
        expect(parseDims([JSON.stringify(tensors)], '--input-size')).toEqual(tensors);
      }),
    );
  });
});

describe('types and names', () => {
  it.each([
    ['float32', 'FP32'],
    ['np.float32', 'FP32'],
    ['<f4', 'FP32'],
    ['TYPE_FP16', 'FP16'],
    ['INT64', 'INT64'],
    ['uint8', 'UINT8'],
    ['bool', 'BOOL'],
    ['TYPE_STRING', 'BYTES'],
    ['object', 'BYTES'],
  ])('%s is %s', (word, type) => expect(parseType(word, '--input-type')).toBe(type));
  it('refuses an unknown type, naming flag and word', () => {
    expect(() => parseType('complex64', '--input-type')).toThrow('--input-type: there is no type "complex64"');
  });
  it.each([
    [
      ['a', 'b'],
      ['a', 'b'],
    ],
    [
      ['a,', 'b,'],
      ['a', 'b'],
    ],
    [['a,b'], ['a', 'b']],
    [
      ['"a"', "'b'"],
      ['a', 'b'],
    ],
    [['\\"a\\"'], ['a']],
  ])('%j are the names %j', (values, names) => expect(wordsOf(values)).toEqual(names));
  it('puts size, type and name together', () => {
    expect(planTensors({ size: ['[-1]', '[-1]'], type: ['int32', 'int64'], name: ['ids', 'mask'] }, 'input')).toEqual([
      { name: 'ids', type: 'INT32', dims: [-1] },
      { name: 'mask', type: 'INT64', dims: [-1] },
    ]);
    expect(planTensors({}, 'input')).toBeUndefined();
  });
  it('names the flag that lacks a value', () => {
    expect(() => planTensors({ size: ['1', '28'], type: ['float32'], name: ['a', 'b'] }, 'output')).toThrow(
      /^--output-size: 1 given for 2/,
    );
  });
});
