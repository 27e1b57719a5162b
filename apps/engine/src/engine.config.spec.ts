import { describe, expect, it } from 'vitest';
import { readEngineConfig } from './engine.config.ts';

describe('settings of the engine', () => {
  it('have defaults for all but the repository', () => {
    const config = readEngineConfig({ PERCH_ENGINE_REPOSITORY: '/models' });
    expect(config).toMatchObject({
      PERCH_ENGINE_HTTP: { host: '127.0.0.1', port: 8000 },
      PERCH_ENGINE_GRPC: { host: '127.0.0.1', port: 8001 },
      PERCH_ENGINE_METRICS: { host: '127.0.0.1', port: 8002 },
      PERCH_ENGINE_ID: 'triton',
    });
    expect(config.PERCH_ENGINE_THREADS).toBeGreaterThanOrEqual(1);
  });

  it('are refused all at once, each by its name', () => {
    const read = () => readEngineConfig({ PERCH_ENGINE_HTTP: 'nowhere', PERCH_ENGINE_THREADS: '0' });
    expect(read).toThrow(/PERCH_ENGINE_HTTP.*PERCH_ENGINE_REPOSITORY.*PERCH_ENGINE_THREADS/s);
  });
});
