import { describe, expect, it } from 'vitest';
import { decideCure, type StuckServer } from './cure.decide.ts';
import { describeEnd, type ProcessEnd } from './exit.decide.ts';
import { decideRestart, restartSettings } from './restart.decide.ts';

const gib = 1024 ** 3;
const end = (over: Partial<ProcessEnd>): ProcessEnd => ({
  code: null,
  signal: null,
  asked: false,
  oomKills: { own: 0, machine: 0 },
  ramBytes: gib,
  limitBytes: 4 * gib,
  ...over,
});

describe('describeEnd', () => {
  it.each<[Partial<ProcessEnd>, string, string]>([
    [{ code: 1 }, 'exit code 1', 'explained'],
    [{ code: 0 }, 'exit code 0', 'explained'],
    [{ signal: 'SIGSEGV' }, 'crashed with SIGSEGV', 'explained'],
    [{ code: 139 }, 'crashed with SIGSEGV', 'explained'],
    [{ signal: 'SIGTERM' }, 'ended by SIGTERM', 'unexplained'],
    [{ signal: 'SIGKILL' }, 'killed by SIGKILL; who sent it is not known', 'unexplained'],
    [{ code: 137 }, 'killed by SIGKILL; who sent it is not known', 'unexplained'],
    [{}, 'ended; how is not known, an earlier agent had started it', 'unexplained'],
    [{ asked: true, signal: 'SIGKILL' }, 'ended as asked (SIGKILL)', 'asked'],
    [{ asked: true, code: 0 }, 'ended as asked', 'asked'],
    [{ startFault: 'ENOENT' }, 'cannot be started: ENOENT', 'explained'],
    [
      { signal: 'SIGKILL', oomKills: { own: 1, machine: 1 } },
      'killed for memory; it was last seen with 1024 MiB of 4096 MiB',
      'explained',
    ],
    [{ oomKills: { own: 2, machine: null }, ramBytes: null }, 'killed for memory', 'explained'],
    [
      { signal: 'SIGKILL', oomKills: { own: null, machine: 1 }, limitBytes: null },
      'probably killed for memory: SIGKILL, and the machine ran out of memory then; it was last seen with 1024 MiB',
      'explained',
    ],
    [
      { signal: 'SIGKILL', oomKills: { own: null, machine: null }, ramBytes: 3.8 * gib },
      'probably killed for memory: SIGKILL; it was last seen with 3891 MiB of 4096 MiB',
      'explained',
    ],
    // A child was killed for memory, the server ended by itself.
    [{ code: 1, oomKills: { own: 1, machine: 1 } }, 'exit code 1', 'explained'],
  ])('%o is "%s"', (over, words, kind) => {
    expect(describeEnd(end(over))).toEqual({ words, kind });
  });
});

describe('decideRestart', () => {
  it('waits 1 s, then twice as long each time up to 30 s, and starts over after a minute up', () => {
    let failures = 0;
    const waits = Array.from({ length: 7 }, () => {
      const next = decideRestart({ upMs: 100, failuresBefore: failures }, restartSettings);
      failures = next.failures;
      return next.waitMs;
    });
    expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    expect(decideRestart({ upMs: 60_000, failuresBefore: failures }, restartSettings)).toEqual({
      failures: 1,
      waitMs: 1_000,
    });
  });
});

describe('decideCure', () => {
  const server: StuckServer = {
    stuck: ['slow'],
    askedAtMs: undefined,
    serving: 2,
    drained: false,
    nowMs: 10_000,
    patienceMs: 5_000,
  };
  it.each<[string, Partial<StuckServer>, ReturnType<typeof decideCure>]>([
    ['nothing is stuck', { stuck: [] }, 'none'],
    ['it came in after all', { stuck: [], askedAtMs: 1 }, 'none'],
    ['nobody else is served', { serving: 0 }, 'restart'],
    ['others are served', {}, 'ask'],
    ['asked just now', { askedAtMs: 9_000 }, 'wait'],
    ['drained', { askedAtMs: 9_000, drained: true }, 'restart'],
    ['nobody took its work in time', { askedAtMs: 5_000 }, 'restart'],
  ])('%s', (_, over, verdict) => {
    expect(decideCure({ ...server, ...over })).toBe(verdict);
  });
});
