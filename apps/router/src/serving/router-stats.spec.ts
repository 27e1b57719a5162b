import { AppError } from '@perch/contracts';
import type { Logger } from '@perch/platform';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { RouterStats } from './router-stats.ts';

const lines: [level: string, message: string, fields: unknown][] = [];
const logger = new Proxy({} as Logger, {
  get: (_none, level: string) => (message: string, fields: unknown) => void lines.push([level, message, fields]),
});
const call = { requestId: 'r1', endpoint: 'text/a' };
const thrown = new AppError('module', 'module text/a@1: preprocess threw TypeError: no such thing');

describe('faults in the log', () => {
  afterEach(() => {
    lines.length = 0;
    vi.useRealTimers();
  });

  it('are ours and those of modules, with request and endpoint', () => {
    const error = new Error('a mistake of ours');
    const stats = new RouterStats(logger);
    for (const one of [error, thrown, new AppError('invalid', 'field n is missing'), new AppError('timeout', 'late')])
      stats.logFault(one, call);
    expect(lines).toEqual([
      ['error', 'request failed', { error, ...call }],
      ['warn', 'module failed', { reason: thrown.message, ...call }],
    ]);
  });

  it('are ten lines a second at most where a module fails again and again', () => {
    vi.useFakeTimers({ toFake: ['performance'], now: 5_000 });
    const stats = new RouterStats(logger);
    const fail = () => Array.from({ length: 100 }, () => stats.logFault(thrown, call));
    fail();
    vi.advanceTimersByTime(999);
    fail();
    expect(lines).toHaveLength(10);
    vi.advanceTimersByTime(1);
    fail();
    expect(lines).toHaveLength(20);
  });
});
