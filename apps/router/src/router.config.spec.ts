import { availableParallelism } from 'node:os';
import { describe, expect, it } from 'vitest';
import { readRouterConfig } from './router.config.ts';

const needed = { PERCH_CONTROL_URL: 'http://127.0.0.1:8080/', PERCH_DATA_DIR: '/var/lib/perch' };

describe('settings of the router', () => {
  it.each([
    [undefined, 1],
    ['3', 3],
    ['auto', availableParallelism()],
  ])('PERCH_WORKERS %s is %s processes', (text, workers) => {
    expect(readRouterConfig({ ...needed, PERCH_WORKERS: text }).workers).toBe(workers);
  });

  it('names every variable that is wrong', () => {
    const env = { PERCH_CONTROL_URL: 'x', PERCH_WORKERS: 'many', PERCH_TRITON_TRANSPORT: 'udp' };
    const read = () => readRouterConfig(env);
    for (const name of ['PERCH_CONTROL_URL', 'PERCH_WORKERS', 'PERCH_TRITON_TRANSPORT', 'PERCH_DATA_DIR'])
      expect(read).toThrow(new RegExp(name));
  });
});
