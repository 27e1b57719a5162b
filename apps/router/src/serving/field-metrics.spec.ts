import type { EndpointMetrics } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { observeCustom } from '../metrics/custom.observe.ts';
import type { Call } from './call.ts';
import { CustomStats } from './custom-stats.ts';
import { observeFields } from './field-metrics.ts';
import { ArmStats } from './request-stats.ts';

const metrics: EndpointMetrics = {
  sample: 1,
  variables: {
    x0: { type: 'scalar', buckets: [0, 1, 10] },
    animal: { type: 'enum', values: ['cat', 'dog', 'true'] },
    load: { type: 'value' },
    _latency: { type: 'scalar', buckets: [0.1, 1] },
  },
};

function observed(
  request: unknown,
  reply: unknown,
  { before = [] as string[], contentType = 'application/json' } = {},
) {
  const custom = new CustomStats();
  const stats = new ArmStats('e', '1', 'a');
  const call = {
    contentType,
    observed: new Set(before),
    body: () => Buffer.from(typeof request === 'string' ? request : JSON.stringify(request)),
    observe: (name: string, value: number | string) => custom.observe(stats, name, value, metrics.variables[name]),
  } as unknown as Call;
  observeFields(call, metrics, reply, 500);
  const samples = observeCustom(custom).flatMap((family) => family.samples);
  return Object.fromEntries(
    samples.map(([series, value]) => [
      series.replace(/endpoint="e",version="1",arm="a",name=/, '').replace('perch_endpoint_metric', ''),
      value,
    ]),
  );
}

const latency = { '_bucket{"_latency",le="0.1"}': 0, '_bucket{"_latency",le="1"}': 1, '_bucket{"_latency",le="+Inf"}': 1, '_sum{"_latency"}': 0.5, '_count{"_latency"}': 1 }; // biome-ignore format: one row

describe('metrics of fields', () => {
  it('come from the reply, or else from the request', () => {
    expect(observed({ x0: 0.5, animal: 'cat' }, { animal: 'dog', load: 7 })).toEqual({
      ...latency,
      '_bucket{"x0",le="0"}': 0, '_bucket{"x0",le="1"}': 1, '_bucket{"x0",le="10"}': 1, '_bucket{"x0",le="+Inf"}': 1,
      '_sum{"x0"}': 0.5, '_count{"x0"}': 1,
      '_values_total{"animal",value="dog"}': 1,
      '_last{"load"}': 7,
    }); // biome-ignore format: one row each
  });

  it('count each element of a list, and what is beyond the last bound', () => {
    expect(observed({}, Buffer.from('{"x0":[[-1,5],[50]]}'))).toMatchObject({
      '_bucket{"x0",le="0"}': 1, '_bucket{"x0",le="1"}': 1, '_bucket{"x0",le="10"}': 2, '_bucket{"x0",le="+Inf"}': 3,
    }); // biome-ignore format: one row
  });

  it.each([
    ['a value that is not named', { animal: 'cow' }, { '_values_total{"animal",value="other"}': 1 }],
    ['a truth value', { animal: true }, { '_values_total{"animal",value="true"}': 1 }],
    ['a text where a number is wanted', { x0: 'five' }, {}],
    ['null', { x0: null, animal: null }, {}],
    ['a list as the reply', [1, 2], {}],
    ['no reply', undefined, {}],
  ])('take %s as it is meant', (_name, reply, wanted) => {
    expect(observed({}, reply)).toEqual({ ...latency, ...wanted });
  });

  it('leave what the module observed by itself, and bodies that are no JSON', () => {
    expect(observed({ x0: 1 }, {}, { before: ['x0'] })).toEqual(latency);
    expect(observed('{"x0":', {})).toEqual(latency);
    expect(observed({ x0: 1 }, {}, { contentType: 'image/png' })).toEqual(latency);
  });
});
