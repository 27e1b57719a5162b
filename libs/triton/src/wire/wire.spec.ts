import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  bytesOfElements,
  bytesOfJson,
  decodeHttpResponse,
  decodeInferRequest,
  decodeInferResponse,
  elementsOf,
  encodeHttpRequest,
  encodeHttpResponse,
  encodeInferRequest,
  encodeInferResponse,
  type InferRequest,
  type InferResponse,
  jsonTextOf,
  kindOfGrpc,
  kindOfHttp,
  messageType,
  plainOf,
} from './index.ts';

const parameters = fc.dictionary(
  fc.string({ minLength: 1 }).filter((key) => key !== '__proto__' && key !== 'shared_memory_region'),
  fc.oneof(fc.string(), fc.boolean(), fc.maxSafeInteger(), fc.double({ noNaN: true, noDefaultInfinity: true }).filter((n) => !Number.isInteger(n))),
  { maxKeys: 3, noNullPrototype: true },
); // biome-ignore format: one row a kind
const optional = <T extends object>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const tensor = fc.record({
  name: fc.string(),
  datatype: fc.constantFrom('FP32', 'BYTES', 'FP16'),
  shape: fc.array(fc.nat(2 ** 31), { maxLength: 4 }),
  bytes: fc.uint8Array({ maxLength: 64 }),
});
const request: fc.Arbitrary<InferRequest> = fc.record({
  modelName: fc.string(),
  modelVersion: fc.string({ minLength: 1 }),
  id: fc.string({ minLength: 1 }),
  parameters,
  inputs: fc.array(tensor, { minLength: 1, maxLength: 3 }),
  outputs: optional(fc.array(fc.record({ name: fc.string(), parameters }), { minLength: 1, maxLength: 2 })),
});
const response: fc.Arbitrary<InferResponse> = fc.record({
  modelName: fc.string(),
  modelVersion: fc.string({ minLength: 1 }),
  id: fc.string({ minLength: 1 }),
  outputs: fc.array(tensor, { minLength: 1, maxLength: 3 }),
});

/** Bytes as hex, empty objects left out: what both forms of a message have in common. */
function without(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
  if (Array.isArray(value)) return value.map(without);
  if (!value || typeof value !== 'object') return value;
  const members = Object.entries(value).map(([key, member]) => [key, without(member)] as const);
  const kept = members.filter(([, member]) => member !== undefined && JSON.stringify(member) !== '{}');
  return Object.fromEntries(kept);
}

describe('messages of inference', () => {
  it('are read back as they were written', () => {
    fc.assert(
      fc.property(request, (r) => {
        expect(without(decodeInferRequest(encodeInferRequest(r)))).toEqual(without(r));
      }),
    );
    fc.assert(
      fc.property(response, (r) => {
        expect(without(decodeInferResponse(encodeInferResponse(r)))).toEqual(without(r));
      }),
    );
  });

  it('say the same as the reflected codec', () => {
    const type = messageType('ModelInferRequest');
    fc.assert(
      fc.property(request, (r) => {
        const plain = plainOf(type, type.decode(encodeInferRequest(r))) as Record<string, never>;
        expect(plain['model_name'] ?? '').toBe(r.modelName);
        const again = type.encode(type.fromObject(plain)).finish();
        expect(without(decodeInferRequest(again))).toEqual(without(r));
      }),
    );
  });

  it('carry the tags that the protocol gives', () => {
    const bytes = encodeInferRequest({
      modelName: 'm',
      inputs: [{ name: 'A', datatype: 'FP32', shape: [1, 2], bytes: new Uint8Array(8) }],
    });
    expect(bytes.toString('hex')).toBe(
      '0a016d2a0d0a0141120446503332 1a020102 3a080000000000000000'.replaceAll(' ', ''),
    );
  });

  it('take typed contents of every type', () => {
    const type = messageType('ModelInferRequest');
    const of = (datatype: string, contents: object, shape = [2]) =>
      decodeInferRequest(
        type.encode(type.fromObject({ model_name: 'm', inputs: [{ name: 'A', datatype, shape, contents }] })).finish(),
      ).inputs[0]!.bytes;
    const bigs = new Uint8Array(new BigInt64Array([-9007199254740993n, 2n]).buffer);
    expect(of('INT64', { int64_contents: [{ low: -1, high: -2097153, unsigned: false }, 2] })).toEqual(bigs);
    expect(of('INT8', { int_contents: [-1, 2] })).toEqual(new Uint8Array([255, 2]));
    expect(of('UINT16', { uint_contents: [65535, 1] })).toEqual(new Uint8Array([255, 255, 1, 0]));
    expect(of('BOOL', { bool_contents: [true, false] })).toEqual(new Uint8Array([1, 0]));
    expect(of('FP64', { fp64_contents: [0.5, -2] })).toEqual(new Uint8Array(new Float64Array([0.5, -2]).buffer));
    expect(of('BYTES', { bytes_contents: [Buffer.from('ab'), Buffer.from('')] })).toEqual(new Uint8Array([2, 0, 0, 0, 97, 98, 0, 0, 0, 0]));
    expect(() => of('FP16', { fp32_contents: [1, 2] })).toThrow(/'A' of type FP16 needs raw_input_contents/);
  }); // biome-ignore format: one row a type

  it('refuse raw and typed contents in one request, and a wrong count of raw entries', () => {
    const type = messageType('ModelInferRequest');
    const bytes = (message: object) => type.encode(type.fromObject({ model_name: 'm', ...message })).finish();
    const input = { name: 'A', datatype: 'FP32', shape: [1] };
    const mixed = bytes({
      inputs: [{ ...input, contents: { fp32_contents: [1] } }],
      raw_input_contents: [new Uint8Array(4)],
    });
    expect(() => decodeInferRequest(mixed)).toThrow(/must not be specified when using raw_input_contents for 'A'/);
    const many = bytes({ inputs: [input], raw_input_contents: [new Uint8Array(4), new Uint8Array(4)] });
    expect(() => decodeInferRequest(many)).toThrow(/raw contents 1 for model 'm', got 2/);
  });
});

describe('HTTP bodies', () => {
  it('count the bytes of the JSON, not its characters, and are read back', () => {
    const answer: InferResponse = {
      modelName: 'größe',
      modelVersion: '1',
      outputs: [{ name: 'é', datatype: 'INT8', shape: [3], bytes: new Uint8Array([1, 2, 3]) }],
    };
    const { parts, headerLength, sizeBytes } = encodeHttpResponse(answer);
    const body = Buffer.concat(parts);
    expect(body.length).toBe(sizeBytes);
    expect(headerLength).toBe(sizeBytes - 3);
    const read = decodeHttpResponse(body, headerLength);
    expect(read.outputs[0]).toMatchObject({ name: 'é', shape: [3] });
    expect([...read.outputs[0]!.bytes]).toEqual([1, 2, 3]);
    expect(() => decodeHttpResponse(body.subarray(0, sizeBytes - 1), headerLength)).toThrow(
      /unexpected size 3 for 'é': 2 bytes/,
    );
    expect(() => decodeHttpResponse(Buffer.concat([body, Buffer.from('x')]), headerLength)).toThrow(
      /1 bytes that no tensor claims/,
    );
    expect(() => decodeHttpResponse(Buffer.from('<html>'))).toThrow(/not JSON/);
  });

  it('ask for binary answers, output by output or for all', () => {
    const inputs = [{ name: 'A', datatype: 'FP32', shape: [1], bytes: new Uint8Array(4) }];
    const head = (outputs?: { name: string }[]) =>
      JSON.parse(Buffer.from(encodeHttpRequest({ modelName: 'm', inputs, outputs }).parts[0]!).toString());
    expect(head()).toMatchObject({
      parameters: { binary_data_output: true },
      inputs: [{ parameters: { binary_data_size: 4 } }],
    });
    expect(head([{ name: 'y' }])).toMatchObject({ outputs: [{ name: 'y', parameters: { binary_data: true } }] });
  });
});

describe('JSON data of tensors', () => {
  it.each([
    ['FP32', [2], [0.5, -1]],
    ['FP64', [2, 1], [[0.1], [2]]],
    ['INT64', [2], [-5, 9007199254740991]],
    ['UINT64', [1], [5]],
    ['UINT8', [2], [0, 255]],
    ['INT16', [1, 2], [[-32768, 32767]]],
    ['BOOL', [2], [true, false]],
    ['BYTES', [2], ['äb', '']],
  ])('%s goes to bytes and back', (datatype, shape, data) => {
    expect(JSON.parse(jsonTextOf(datatype, bytesOfJson(datatype, shape, data, 'A'), 'A'))).toEqual(
      (data as unknown[]).flat(),
    );
  });

  it.each([
    ['FP32', [3], [1, 2], /shape \[3\] wants 3 elements, got 2/],
    ['FP32', [1], ['1'], /wanted numbers, got string/],
    ['UINT8', [1], [256], /256 is not a value of UINT8/],
    ['INT32', [1], [0.5], /0.5 is not a value of INT32/],
    ['INT64', [1], [2 ** 63], /is not a value of INT64/],
    ['BYTES', [1], [1], /wanted strings/],
    ['BOOL', [1], ['true'], /wanted true or false/],
    ['FP32', [1], 5, /wanted an array/],
    ['FP16', [1], [1], /sending FP16 data via JSON is not supported/],
    ['NOPE', [1], [1], /unknown datatype 'NOPE'/],
  ])('%s %j refuses %j', (datatype, shape, data, words) => {
    expect(() => bytesOfJson(datatype, shape, data, 'A')).toThrow(words);
  });

  it('writes NaN and infinities as Triton does, and reads bytes that lie askew', () => {
    const floats = new Uint8Array(new Float32Array([Number.NaN, Number.POSITIVE_INFINITY, 0.1]).buffer);
    const askew = new Uint8Array(13);
    askew.set(floats, 1);
    for (const bytes of [askew.subarray(1), Buffer.from(askew.buffer, 1)])
      expect(jsonTextOf('FP32', bytes, 'y')).toBe('[NaN,Infinity,0.10000000149011612]');
  });

  it('cuts BYTES into elements and refuses a length past the end', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 9 })), (elements) => {
        expect(elementsOf(bytesOfElements(elements), 'A').map((e) => [...e])).toEqual(elements.map((e) => [...e]));
      }),
    );
    expect(() => elementsOf(new Uint8Array([9, 0, 0, 0, 1]), 'A')).toThrow(
      /'A': an element's length runs past the end/,
    );
    expect(() => elementsOf(new Uint8Array([9, 0]), 'A')).toThrow(/runs past the end/);
  });
});

describe('faults', () => {
  it.each([
    [14, "Request for unknown model: 'm' version 1 is not at ready state", 'not_ready'],
    [14, '[request id: a] Exceeds maximum queue size', 'overloaded'],
    [14, 'Request timeout expired', 'queue_timeout'],
    [14, 'This protocol is restricted, expecting header', 'restricted'],
    [14, 'No connection established. Last error: connect ECONNREFUSED', 'connection'],
    [5, "Request for unknown model: 'm' is not found", 'unknown_model'],
    [3, "load failed for model 'm': version 1 is at UNAVAILABLE state: bad", 'load'],
    [13, "failed to load 'm', failed to poll from model repository", 'load'],
    [13, 'boom', 'model'],
    [4, 'Deadline exceeded', 'deadline'],
    [99, 'what', 'other'],
  ])('gRPC %i "%s" is %s', (code, text, kind) => expect(kindOfGrpc(code, text)).toBe(kind));

  it.each([
    [503, "Request for unknown model: 'm' version 1 is not at ready state", 'not_ready'],
    [503, '[request id: <id_unknown>] Exceeds maximum queue size', 'overloaded'],
    [404, "Request for unknown model: 'm' has no available versions", 'unknown_model'],
    [400, '[request id: a] unexpected shape for input', 'input'],
  ])('HTTP %i "%s" is %s', (status, text, kind) => expect(kindOfHttp(status, text)).toBe(kind));
});
