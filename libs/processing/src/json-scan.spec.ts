import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readJsonBody } from './json-scan.ts';
import { ScannedNumbers } from './number-scan.ts';

/** Lists as JSON.parse would have made them. */
function unscanned(value: unknown): unknown {
  if (value instanceof ScannedNumbers) {
    let level: unknown[] = [...value.values];
    for (const size of value.shape.slice(1).reverse()) {
      const rows: unknown[] = [];
      for (let i = 0; i < level.length; i += size) rows.push(level.slice(i, i + size));
      level = rows;
    }
    return level;
  }
  if (Array.isArray(value)) return value.map(unscanned);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, unscanned(inner)]));
}

const numbers = Array.from({ length: 2000 }, (_, i) => i / 7);
const big = JSON.stringify(numbers);
const read = (text: string | Buffer) => readJsonBody(Buffer.from(text as string), 'double');

describe('reading a body', () => {
  it.each([
    ['a bare list', big, true],
    ['one named list', `{"x":${big}}`, true],
    ['spaces everywhere', ` { "x" : ${big} , "y" : [ 1 , 2 ] } `, true],
    ['nested lists', `{"x":[${big},${big}]}`, true],
    [
      'the protocol form',
      `{"id":"é","inputs":[{"name":"x","datatype":"FP32","shape":[1,2000],"data":${big}}],"n":null}`,
      true,
    ],
    ['the last of two equal names', `{"x":${big},"x":[1]}`, false],
    ['a list of strings', `{"x":${JSON.stringify(numbers.map(String))}}`, false],
    ['mixed values', `{"x":[1,"a",${big.slice(1)}}`, false],
    ['ragged lists', `{"x":[${big},[1]]}`, false],
    ['escapes in a name', `{"a\\"b":${big}}`, false],
    ['a name of an object inside', `{"__proto__":${big}}`, false],
    ['deep objects', `{"a":{"b":{"c":{"d":{"e":{"f":${big}}}}}}}`, false],
    ['empty lists and objects', `{"x":${big},"y":[],"z":{}}`, false],
    ['a very long string', `{"x":${big},"y":"${'a'.repeat(9000)}"}`, false],
  ])('reads %s as JSON.parse does', (_what, text, scans) => {
    const value = read(text);
    expect(unscanned(value)).toEqual(JSON.parse(text));
    const holdsScanned = JSON.stringify(value, (_key, inner) =>
      inner instanceof ScannedNumbers ? 'scanned' : inner,
    ).includes('scanned');
    expect(holdsScanned).toBe(scans);
  });

  it('reads any JSON with a long list in it as JSON.parse does', () => {
    const plain = fc.dictionary(fc.string({ maxLength: 8 }), fc.jsonValue({ maxDepth: 2 }), { maxKeys: 4 });
    fc.assert(
      fc.property(plain, fc.boolean(), (fields, spaced) => {
        const text = JSON.stringify({ first: numbers, ...fields, last: [numbers] }, null, spaced ? 1 : 0);
        expect(unscanned(read(text))).toEqual(JSON.parse(text));
      }),
      { numRuns: 300 },
    );
  });

  it('refuses what JSON.parse refuses, when one byte of a plain body is changed', () => {
    const text = Buffer.from(JSON.stringify({ inputs: [{ name: 'x', shape: [1, 700], data: numbers.slice(0, 700) }] }));
    fc.assert(
      fc.property(fc.nat(text.length - 1), fc.integer({ min: 0, max: 127 }), (at, byte) => {
        const changed = Buffer.from(text);
        changed[at] = byte;
        let wanted: unknown;
        try {
          wanted = JSON.parse(changed.toString());
        } catch {
          expect(() => read(changed)).toThrow(expect.objectContaining({ code: 'invalid' }));
          return;
        }
        expect(unscanned(read(changed))).toEqual(wanted);
      }),
      { numRuns: 2000 },
    );
  });

  it.each([
    ['nothing', Buffer.alloc(0), 'the body is empty, wanted JSON'],
    ['broken JSON', Buffer.from('{"secret": 1,}'), 'the body is not valid JSON (at character 13)'],
    ['a body that was cut off', Buffer.from(`{"x":${big.slice(0, 9000)}`), 'the body is not valid JSON'],
    [
      'bytes that are no UTF-8',
      Buffer.concat([Buffer.from('{"x":"'), Buffer.of(0xff, 0xfe), Buffer.from('"}')]),
      'not valid UTF-8',
    ],
    ['a big body with one bad byte', Buffer.from(`{"x\xff":${big}}`, 'latin1'), 'not valid UTF-8'],
  ])('refuses %s without showing the body', (_what, body, message) => {
    expect(() => read(body)).toThrow(
      expect.objectContaining({ code: 'invalid', message: expect.stringContaining(message) }),
    );
    expect(() => read(body)).not.toThrow(/secret/);
  });
});
