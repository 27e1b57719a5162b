import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readAgentConfig } from './agent.config.ts';

const least = {
  PERCH_CONTROL_URL: 'http://127.0.0.1:8080',
  PERCH_JOIN_KEY: 'pj_x',
  PERCH_DATA_DIR: 'data',
  PERCH_TRITON_HTTP: '127.0.0.1:8000',
  PERCH_TRITON_GRPC: '[::1]:8001',
  PERCH_TRITON_REPOSITORY: '/models',
};

describe('readAgentConfig', () => {
  it('fills in what is left out', () => {
    expect(readAgentConfig(least)).toMatchObject({
      PERCH_LISTEN: { host: '127.0.0.1', port: 8095 },
      PERCH_DATA_DIR: resolve('data'),
      PERCH_LABELS: {},
      PERCH_LOAD_DEADLINE_MS: 600_000,
    });
    expect(readAgentConfig(least).PERCH_NAME.length).toBeGreaterThan(0);
  });

  it('reads labels', () => {
    const { PERCH_LABELS } = readAgentConfig({ ...least, PERCH_LABELS: 'zone=a, gpu=h100,note=a=b' });
    expect(PERCH_LABELS).toEqual({ zone: 'a', gpu: 'h100', note: 'a=b' });
  });

  it('names every bad variable at once', () => {
    const bad = { PERCH_CONTROL_URL: 'nope', PERCH_TRITON_HTTP: 'here', PERCH_LABELS: 'zone', PERCH_TLS_CERT: 'c.pem' };
    const names = Object.keys({ ...bad, PERCH_JOIN_KEY: '', PERCH_TRITON_REPOSITORY: '' }).filter(
      (n) => n !== 'PERCH_TLS_CERT',
    );
    for (const name of names) expect(() => readAgentConfig(bad)).toThrow(name);
    expect(() => readAgentConfig({ ...least, PERCH_TLS_CERT: 'c.pem' })).toThrow(
      'PERCH_TLS_CERT: wants PERCH_TLS_KEY beside it',
    );
  });
});
