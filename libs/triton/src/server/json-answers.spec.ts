import { AppError } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { configJson, inferAnswer } from './json-answers.ts';
import { grpcStatus, httpStatus, ServingFault, servingCodes, servingFaultOf } from './serving-fault.ts';

describe('the configuration as JSON', () => {
  it('writes every scalar, list and map out, and only the messages that are set', () => {
    const json = configJson({
      name: 'm',
      input: [{ name: 'x', data_type: 'TYPE_FP32', dims: [-1] }],
      dynamic_batching: {},
    });
    expect(json).toMatchObject({
      name: 'm',
      platform: '',
      max_batch_size: 0,
      input: [{ name: 'x', format: 'FORMAT_NONE', dims: [-1], optional: false }],
      output: [],
      parameters: {},
      dynamic_batching: { preferred_batch_size: [], max_queue_delay_microseconds: 0, priority_queue_policy: {} },
    });
    expect(json).not.toHaveProperty('sequence_batching');
    expect(json).not.toHaveProperty('optimization');
  });
});

describe('infer answers', () => {
  it('carry each output as data or as bytes', () => {
    const output = (name: string) => ({ name, datatype: 'INT8', shape: [2], bytes: new Uint8Array([1, 255]) });
    const response = { modelName: 'm"', modelVersion: '1', id: 'q', outputs: [output('a'), output('b')] };
    const { text, binary } = inferAnswer(response, (name) => name === 'b');
    expect(JSON.parse(text)).toEqual({
      id: 'q',
      model_name: 'm"',
      model_version: '1',
      outputs: [
        { name: 'a', datatype: 'INT8', shape: [2], data: [1, -1] },
        { name: 'b', datatype: 'INT8', shape: [2], parameters: { binary_data_size: 2 } },
      ],
    });
    expect(binary.map((bytes) => [...bytes])).toEqual([[1, 255]]);
  });
});

describe('faults', () => {
  it('have a status on both sides', () => {
    for (const code of servingCodes) {
      expect(grpcStatus[code]).toBeGreaterThan(0);
      expect(httpStatus[code]).toBeGreaterThanOrEqual(400);
    }
  });

  it('show their words only when they are meant to be seen', () => {
    expect(servingFaultOf(new Error('secret'))).toMatchObject({ serving: 'internal', message: 'internal error' });
    expect(servingFaultOf(new AppError('invalid', 'bad shape'))).toMatchObject({
      serving: 'invalid_argument',
      message: 'bad shape',
    });
    const own = new ServingFault('unavailable', 'Server exiting');
    expect(servingFaultOf(own)).toBe(own);
  });
});
