import { describe, expect, it } from 'vitest';
import { serverEnvironment } from './agent.config.ts';
import { type CommandLine, readCommandLine } from './command-line.plan.ts';

describe('readCommandLine', () => {
  it.each<[string[], CommandLine]>([
    [[], { verb: 'run', supervise: undefined }],
    [['--supervise', '--', 'tritonserver', '--id=a'], { verb: 'run', supervise: ['tritonserver', '--id=a'] }],
    [['drain'], { verb: 'drain' }],
    [['drain', 'now'], { verb: 'refuse', fault: expect.stringContaining('drain') }],
    [['--supervise', '--'], { verb: 'refuse', fault: expect.stringContaining('behind --') }],
    [['--supervise', 'tritonserver'], { verb: 'refuse', fault: expect.stringContaining('behind --') }],
    [['--what'], { verb: 'refuse', fault: expect.stringContaining('--what') }],
  ])('%j', (words, line) => {
    expect(readCommandLine(words)).toEqual(line);
  });
});

describe('serverEnvironment', () => {
  it('keeps our settings, secrets among them, from the models', () => {
    expect(serverEnvironment({ PATH: '/bin', PERCH_JOIN_KEY: 'pj_x', CUDA_VISIBLE_DEVICES: '0' })).toEqual({
      PATH: '/bin',
      CUDA_VISIBLE_DEVICES: '0',
    });
  });
});
