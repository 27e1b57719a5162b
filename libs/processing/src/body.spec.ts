import { describe, expect, it } from 'vitest';
import { bytesOf, readBody } from './body.ts';

async function multipart(parts: [name: string, value: string | Blob, file?: string][]) {
  const form = new FormData();
  for (const [name, value, file] of parts)
    if (typeof value === 'string') form.append(name, value);
    else form.append(name, value, file);
  const request = new Response(form);
  return { body: Buffer.from(await request.arrayBuffer()), type: request.headers.get('content-type')! };
}

describe('readBody', () => {
  it('makes one object of fields and files', async () => {
    const { body, type } = await multipart([
      ['text', 'a cat'],
      ['text', 'a dog'],
      ['image', new Blob([Uint8Array.of(1, 2, 255)], { type: 'image/png' }), 'a.png'],
      ['options', new Blob(['{"topK": 2}'], { type: 'application/json' }), 'o.json'],
    ]);
    const defaults = { threshold: 0.5, text: 'none' };
    expect(await readBody({ defaults }, body, type)).toEqual({
      threshold: 0.5, text: ['a cat', 'a dog'], image: Buffer.of(1, 2, 255), options: { topK: 2 },
    }); // biome-ignore format: one row reads better
  });

  it('keeps a field called __proto__ a field', async () => {
    const { body, type } = await multipart([['__proto__', 'x']]);
    const value = (await readBody({}, body, type)) as object;
    expect(Object.hasOwn(value, '__proto__')).toBe(true);
    expect(({} as Record<string, unknown>)['x']).toBeUndefined();
  });

  it.each([
    ['cut off', (body: Buffer) => body.subarray(0, body.length - 20)],
    ['without its boundary', () => Buffer.from('nothing of the kind')],
    ['empty', () => Buffer.alloc(0)],
  ])('refuses a multipart body that is %s', async (_name, spoil) => {
    const { body, type } = await multipart([['image', new Blob(['abc']), 'a.bin']]);
    await expect(readBody({}, spoil(body), type)).rejects.toThrow('the multipart body cannot be read');
  });

  it('names a part that is no JSON', async () => {
    const { body, type } = await multipart([['o', new Blob(['{'], { type: 'application/json' }), 'o.json']]);
    await expect(readBody({}, body, type)).rejects.toThrow('part "o" is not valid JSON');
  });

  it.each([
    ['JSON with defaults', { defaults: { k: 1, n: 2 } }, '{"n":3}', 'application/json', { k: 1, n: 3 }],
    ['JSON that is a list', { defaults: { k: 1 } }, '[1]', undefined, [1]],
    ['JSON unparsed', { body: 'json-bytes' as const }, '{"a":1}', 'application/json', Buffer.from('{"a":1}')],
    ['an image', {}, 'xyz', 'image/png', Buffer.from('xyz')],
  ])('reads %s', (_name, module, text, type, wanted) => {
    expect(readBody(module, Buffer.from(text), type)).toEqual(wanted);
  });

  it('refuses other than JSON where the module reads JSON itself', () => {
    expect(() => readBody({ body: 'json-bytes' }, Buffer.of(1), 'image/png')).toThrow('wanted application/json');
  });
});

describe('bytesOf', () => {
  it.each([
    ['a Buffer', Buffer.of(1, 2)],
    ['base64', 'AQI='],
    ['base64 without padding', 'AQI'],
    ['a data: URL', 'data:image/png;base64,AQI='],
    ['an object of b64', { b64: 'AQI=' }],
  ])('takes %s', (_name, value) => {
    expect(bytesOf(value, 'image')).toEqual(Buffer.of(1, 2));
  });

  it.each([
    [5, 'image is a number, wanted bytes: base64 text, a data: URL or a file'],
    ['', 'image is a string, wanted bytes'],
    ['*', 'image is not valid base64'],
    [null, 'image is null, wanted bytes'],
  ])('refuses %j', (value, message) => {
    expect(() => bytesOf(value, 'image')).toThrow(message);
  });
});
