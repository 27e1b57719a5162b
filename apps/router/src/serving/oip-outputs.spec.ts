import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RequestHead } from '../http1/index.ts';
import { askedBy, seeOutputs } from './oip-outputs.ts';

const reply = (outputs: string) => Buffer.from(`{"model_name":"m","model_version":"1","outputs":[${outputs}]}`);
const tensor = (data: string, more = '') => `{"name":"y","datatype":"FP32","shape":[1,2]${more},"data":${data}}`;

describe('outputs of a reply in JSON', () => {
  it.each([
    ['[1.5,2]', 2, false],
    ['[]', 0, false],
    ['[1e30,-Infinity]', 2, false],
    ['[NaN,1]', 2, true],
    ['[1,Infinity]', 2, true],
    ['[1,null]', 2, true],
    ['[true,false]', 2, false],
    ['[[1,2]]', 2, false],
    ['["a","],b",":"]', 3, false],
    ['[["NaN"],["b"]]', 2, false],
  ])('%s', (data, count, broken) => {
    expect(seeOutputs(reply(tensor(data)), undefined)).toEqual([
      { name: 'y', datatype: 'FP32', shape: [1, 2], values: { count, broken } },
    ]);
  });

  it('keeps several outputs apart, and text that looks like data', () => {
    const name = JSON.stringify('"data":[1,2]');
    const first = `{"name":${name},"datatype":"INT32","shape":[3],"data":[1,2,3]}`;
    expect(seeOutputs(reply(`${first},${tensor('[4,NaN]')}`), undefined)).toEqual([
      { name: '"data":[1,2]', datatype: 'INT32', shape: [3], values: { count: 3, broken: false } },
      { name: 'y', datatype: 'FP32', shape: [1, 2], values: { count: 2, broken: true } },
    ]);
  });

  it('counts what a parser counts, of whatever numbers', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean())), (values) => {
        const seen = seeOutputs(reply(tensor(JSON.stringify(values))), undefined);
        expect(seen![0]!.values).toEqual({ count: values.length, broken: false });
      }),
    );
  });

  it.each([
    ['no JSON', Buffer.from('nonsense')],
    ['JSON cut short', reply(tensor('[1,2]')).subarray(0, 70)],
    ['a bare NaN where text stands beside', reply(`${tensor('[NaN]')},${tensor('["a"]')}`)],
  ])('cannot read %s', (_what, body) => {
    expect(seeOutputs(body, undefined)).toBeUndefined();
  });

  it('finds none where there is none', () => {
    expect(seeOutputs(Buffer.from('{"model_name":"m"}'), undefined)).toEqual([]);
    expect(seeOutputs(reply('{"name":"y","datatype":"FP32","shape":[1,2]}'), undefined)![0]!.values!.count).toBe(0);
  });
});

describe('outputs of a reply in binary', () => {
  const bytes = Buffer.from([1, 2, 3, 4, 5, 6, 7, 8]);
  const binary = (size: number) =>
    `{"name":"y","datatype":"FP32","shape":[1,2],"parameters":{"binary_data_size":${size}}}`;
  const whole = (json: Buffer, tail = bytes) => [Buffer.concat([json, tail]), json.length] as const;

  it('are views of the bytes as they lie', () => {
    const [body, length] = whole(reply(binary(8)));
    const [seen] = seeOutputs(body, length)!;
    expect([...seen!.bytes!]).toEqual([...bytes]);
    expect(seen!.bytes!.buffer).toBe(body.buffer);
  });

  it('stand beside JSON ones and ones in shared memory', () => {
    const shared = `{"name":"s","datatype":"FP32","shape":[9],"parameters":{"shared_memory_region":"r"}}`;
    const [body, length] = whole(reply(`${tensor('[1,2]')},${shared},${binary(8)}`));
    const seen = seeOutputs(body, length)!;
    expect(seen.map(({ bytes: at, values }) => [at?.length, values?.count])).toEqual([
      [undefined, 2],
      [undefined, undefined],
      [8, undefined],
    ]);
  });

  it.each([
    ['ends beyond the reply', 12],
    ['leaves bytes that nobody claims', 4],
  ])('a tensor that %s cannot be read', (_what, size) => {
    const [body, length] = whole(reply(binary(size)));
    expect(seeOutputs(body, length)).toBeUndefined();
  });
});

describe('a reply of whatever form', () => {
  const member = fc.oneof(fc.string(), fc.integer(), fc.constant(null), fc.array(fc.integer(), { maxLength: 3 }));
  const parameters = fc.oneof(member, fc.record({ binary_data_size: member }));
  const output = fc.record(
    { name: member, datatype: member, shape: member, parameters, data: member },
    { requiredKeys: [] },
  );
  it('is read, or is not, and never throws', () => {
    fc.assert(
      fc.property(
        fc.oneof(member, fc.array(fc.oneof(member, output), { maxLength: 3 })),
        fc.nat(60),
        (outputs, cut) => {
          const body = Buffer.from(JSON.stringify({ outputs }));
          const seen = [
            seeOutputs(body, undefined),
            seeOutputs(body, Math.min(cut, body.length)),
            seeOutputs(body.subarray(cut), undefined),
          ];
          for (const one of seen) expect(one === undefined || Array.isArray(one)).toBe(true);
        },
      ),
    );
  });
});

describe('what a request asked for', () => {
  const of = (text: string | Buffer[], headers: Record<string, string> = {}) => {
    const body = typeof text === 'string' ? [Buffer.from(text)] : text;
    const asked = askedBy({ head: { headers } as unknown as RequestHead, body });
    return [asked.some(), asked.classes()];
  };

  it('is read from the words of its JSON', () => {
    expect(of('{"inputs":[]}')).toEqual([false, false]);
    expect(of('{"inputs":[],"outputs":[{"name":"y","parameters":{"classification":2}}]}')).toEqual([true, true]);
    expect(of([Buffer.from('{"inputs":[],"out'), Buffer.from('puts":[{"name":"y"}]}')])).toEqual([true, false]);
  });

  it('is not read from its tensors, and leniently where it is packed', () => {
    const json = '{"inputs":[]}';
    const headers = { 'inference-header-content-length': String(json.length) };
    expect(of(`${json}"outputs"`, headers)).toEqual([false, false]);
    expect(of('packed', { 'content-encoding': 'gzip' })).toEqual([true, true]);
  });
});
