import fc from 'fast-check';
import protobuf from 'protobufjs';
import { describe, expect, it } from 'vitest';
import { acceptedTexts, refusedTexts } from '../../../../test/support/config-texts.ts';
import { configFaults, validateModelConfig } from './config-faults.ts';
import { type ModelConfig, modelConfigType, parseModelConfig, writeModelConfig } from './model-config.ts';

describe('reading config.pbtxt', () => {
  it.each(acceptedTexts.map((text) => [text]))('takes %j', (text) => {
    expect(() => parseModelConfig(text)).not.toThrow();
  });

  it.each(refusedTexts.map((text) => [text]))('refuses %j with line and column', (text) => {
    expect(() => parseModelConfig(text)).toThrow(/^config\.pbtxt, line \d+, column \d+: /);
  });

  it.each<[string, object]>([
    ['max_batch_size: 0x10', { max_batch_size: 16 }],
    ['max_batch_size: 010', { max_batch_size: 8 }],
    ['max_batch_size: - 8', { max_batch_size: -8 }],
    [`platform: "a" 'b' "c"`, { platform: 'abc' }],
    [String.raw`platform: "\x41\101\u0041\n\"\\"`, { platform: 'AAA\n"\\' }],
    ['instance_group [ { kind: KIND_CPU }, < count: 2 > ]', { instance_group: [{ kind: 'KIND_CPU' }, { count: 2 }] }],
    ['instance_group { kind: 2 }', { instance_group: [{ kind: 'KIND_CPU' }] }],
    ['input { dims: -1 dims: [ 3, 4 ] }', { input: [{ dims: [-1, 3, 4] }] }],
    ['dynamic_batching { }', { dynamic_batching: {} }],
    ['dynamic_batching { preserve_ordering: t }', { dynamic_batching: { preserve_ordering: true } }],
    ['parameters { value { string_value: "v" } key: "k" }', { parameters: { k: { string_value: 'v' } } }],
    ['parameters [ { key: "k" }, { key: "k" value { string_value: "w" } } ]', { parameters: { k: { string_value: 'w' } } }],
    ['metric_tags { key: "__proto__" value: "x" }', { metric_tags: JSON.parse('{"__proto__":"x"}') }],
    ['dynamic_batching { priority_queue_policy { key: 2 } }', { dynamic_batching: { priority_queue_policy: { 2: {} } } }],
    ['version_policy { specific { versions: 9223372036854775807 } }', { version_policy: { specific: { versions: [9223372036854775807n] } } }],
    ['sequence_batching { direct { minimum_slot_utilization: -inf } }', { sequence_batching: { direct: { minimum_slot_utilization: Number.NEGATIVE_INFINITY } } }],
  ])('%s', (text, config) => expect(parseModelConfig(text)).toEqual(config)); // biome-ignore format: one row a case

  it.each([
    ['name: "m"\n  bogus: 1', /^the config text of m, line 2, column 3: ModelConfig has no field named "bogus"$/],
    ['input [\n { name "x" } ]', /line 2, column 9: wanted ":" after "name", got a string/],
    ['max_batch_size: 1\nmax_batch_size: 2', /line 2, column 1: "max_batch_size" may be given once only/],
    [
      'dynamic_batching {}\nsequence_batching {}',
      /line 2, column 1: "sequence_batching" and "dynamic_batching" exclude one another/,
    ],
    ['instance_group { kind: GPU }', /"kind" wants one of KIND_AUTO, KIND_GPU, KIND_CPU, KIND_MODEL, got "GPU"/],
    ['max_batch_size: 3000000000', /wants a whole number from -2147483648 to 2147483647, got 3000000000/],
    ['platform: "a', /column 11: the string has no closing quote/],
    ['dynamic_batching {', /wanted "}" or a field, got the end of the text/],
  ])('%j says where and what', (text, words) => {
    expect(() => parseModelConfig(text, 'the config text of m')).toThrow(words);
  });
});

const known = new Map<string, fc.Arbitrary<Record<string, unknown>>>();

/** Any message of a type: every field may be there or not, one member of each oneof at most. */
function messageOf(type: protobuf.Type, depth: number): fc.Arbitrary<Record<string, unknown>> {
  const key = `${type.fullName} ${depth}`;
  const found = known.get(key) ?? anyMessage(type, depth);
  known.set(key, found);
  return found;
}

function anyMessage(type: protobuf.Type, depth: number): fc.Arbitrary<Record<string, unknown>> {
  const members = type.fieldsArray
    .map((field) => field.resolve())
    .filter((field) => depth > 0 || !(field.resolvedType instanceof protobuf.Type))
    // Of an enumeration with one member there is nothing but the default, which is not written.
    .filter(
      ({ resolvedType }) => !(resolvedType instanceof protobuf.Enum) || Object.keys(resolvedType.values).length > 1,
    )
    .map((field) =>
      fc.option(
        fieldValue(field, depth).map((value) => [field.name, value] as const),
        { nil: undefined },
      ),
    );
  return fc.tuple(...members).map((pairs) => {
    const message: Record<string, unknown> = {};
    for (const pair of pairs) {
      if (!pair) continue;
      const oneof = type.fields[pair[0]]!.partOf?.oneof ?? [];
      if (!oneof.some((other) => message[other] !== undefined)) message[pair[0]] = pair[1];
    }
    return message;
  });
}

function fieldValue(field: protobuf.Field, depth: number): fc.Arbitrary<unknown> {
  const one = singleOf(field, depth);
  if (field.map) {
    const key = (field as unknown as protobuf.MapField).keyType === 'string' ? fc.string() : fc.nat().map(String);
    const distinct = key.filter((name) => name !== '__proto__');
    return fc.dictionary(distinct, one, { minKeys: 1, maxKeys: 2, noNullPrototype: true });
  }
  if (field.repeated) return fc.array(one, { minLength: 1, maxLength: 2 });
  if (field.partOf || field.resolvedType instanceof protobuf.Type) return one;
  return one.filter(
    (value) =>
      value !== '' && value !== false && value !== 0 && value !== field.defaultValue && value !== defaultEnum(field),
  );
}

const defaultEnum = (field: protobuf.Field) =>
  field.resolvedType instanceof protobuf.Enum ? field.resolvedType.valuesById[0] : undefined;

function singleOf(field: protobuf.Field, depth: number): fc.Arbitrary<unknown> {
  const { resolvedType } = field;
  if (resolvedType instanceof protobuf.Type) return messageOf(resolvedType, depth - 1);
  if (resolvedType instanceof protobuf.Enum) return fc.constantFrom(...Object.keys(resolvedType.values));
  const kinds: Record<string, fc.Arbitrary<unknown>> = {
    string: fc.string({ unit: 'binary' }).map((text) => text.replaceAll('\0', '')),
    bool: fc.boolean(),
    int32: fc.integer(),
    uint32: fc.nat(2 ** 32 - 1),
    int64: fc.maxSafeInteger(),
    uint64: fc.maxSafeNat(),
    float: fc.float({ noDefaultInfinity: false }),
    double: fc.double(),
  };
  return kinds[field.type]!;
}

describe('writing config.pbtxt', () => {
  it('gives a text that reads back as the same configuration', { timeout: 60_000 }, () => {
    fc.assert(
      fc.property(messageOf(modelConfigType, 3), (config) => {
        expect(parseModelConfig(writeModelConfig(config as ModelConfig))).toEqual(config);
      }),
      { numRuns: 100 },
    );
  });

  it('leaves out defaults, one field a line', () => {
    const text = writeModelConfig({
      name: 'm"\n',
      platform: '',
      max_batch_size: 0,
      input: [{ name: 'x', data_type: 'TYPE_INT64', dims: [-1, 3], optional: false }],
      dynamic_batching: {},
      parameters: { k: { string_value: 'é\x01' } },
    });
    expect(text.split('\n')).toEqual([
      'name: "m\\"\\n"',
      'input {',
      '  name: "x"',
      '  data_type: TYPE_INT64',
      '  dims: [ -1, 3 ]',
      '}',
      'dynamic_batching {}',
      'parameters {',
      '  key: "k"',
      '  value {',
      '    string_value: "é\\001"',
      '  }',
      '}',
      '',
    ]);
  });

  it('refuses a field that Triton does not have', () => {
    expect(() => writeModelConfig({ inputs: [] })).toThrow(/ModelConfig has no field named "inputs"/);
    expect(() => writeModelConfig({ input: [{ type: 'x' }] })).toThrow(/ModelInput has no field named "type"/);
  });
});

describe('what Triton would refuse', () => {
  const x = { name: 'x', data_type: 'TYPE_FP32', dims: [4] };
  it.each<[string, ModelConfig, RegExp]>([
    ['a negative batch', { max_batch_size: -1 }, /max_batch_size -1 is negative/],
    ['no dims', { input: [{ ...x, dims: [] }] }, /input 'x' has no dims/],
    ['a size of 0', { output: [{ ...x, dims: [0] }] }, /output 'x': a size in dims \[0\]/],
    ['no type', { input: [{ name: 'x', dims: [1] }] }, /input 'x' has no data_type/],
    ['no name', { input: [{ data_type: 'TYPE_FP32', dims: [1] }] }, /input 1 has no name/],
    ['a name twice', { input: [x, x] }, /input 'x' is given twice/],
    ['a reshape of other size', { max_batch_size: 1, input: [{ ...x, reshape: { shape: [5] } }] }, /differ in their element count/],
    ['a reshape of other wildcards', { input: [{ ...x, dims: [-1], reshape: { shape: [4] } }] }, /as many -1/],
    ['an empty reshape without batching', { input: [{ ...x, dims: [1], reshape: {} }] }, /an empty reshape wants a max_batch_size over 0/],
    ['a preferred size over the maximum', { max_batch_size: 4, dynamic_batching: { preferred_batch_size: [4, 8] } }, /preferred_batch_size 8 is not between 1 and max_batch_size 4/],
    ['ordering and priorities', { dynamic_batching: { preserve_ordering: true, priority_levels: 2 } }, /one priority level at most/],
    ['ordering and DELAY', { dynamic_batching: { preserve_ordering: true, default_queue_policy: { timeout_action: 'DELAY', default_timeout_microseconds: 5 } } }, /DELAY/],
    ['an ensemble without steps', { platform: 'ensemble', ensemble_scheduling: {} }, /at least one step/],
    ['an ensemble without a schedule', { platform: 'ensemble' }, /wants ensemble_scheduling/],
    ['an ensemble with instances', { platform: 'ensemble', ensemble_scheduling: { step: [{}] }, instance_group: [{}] }, /takes no instance_group/],
    ['KIND_MODEL with gpus', { instance_group: [{ kind: 'KIND_MODEL', gpus: [0] }] }, /KIND_MODEL takes no gpus/],
    ['a cache for sequences', { response_cache: { enable: true }, sequence_batching: {} }, /response_cache and sequence_batching/],
    ['a cache for a decoupled model', { response_cache: { enable: true }, model_transaction_policy: { decoupled: true } }, /response_cache and a decoupled/],
  ])('%s', (_what, config, words) => {
    expect(() => validateModelConfig(config)).toThrow(words);
  }); // biome-ignore format: one row a case

  it('finds nothing wrong with a good one, and lists every fault of a bad one', () => {
    const good: ModelConfig = {
      max_batch_size: 8,
      input: [x, { ...x, name: 'one', dims: [1], reshape: { shape: [] } }],
      dynamic_batching: { preferred_batch_size: [8], preserve_ordering: true },
    };
    expect(configFaults(good)).toEqual([]);
    expect(configFaults({ max_batch_size: -1, input: [{ ...x, dims: [] }] })).toHaveLength(2);
  });
});
