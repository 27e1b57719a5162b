import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { cli } from './cli-stack.ts';

/** The quickest of some runs: what the machine does besides makes the others slower. */
function quickestMs(args: string[]): number {
  let best = Number.POSITIVE_INFINITY;
  for (let n = 0; n < 12; n += 1) {
    const begun = performance.now();
    expect(spawnSync(process.execPath, args).status).toBe(0);
    best = Math.min(best, performance.now() - begun);
  }
  return best;
}

describe('a cold perch --help', () => {
  it('is there within 150 ms (or little more than Node itself takes, on a slow machine)', () => {
    const bare = quickestMs(['-e', '']);
    const help = quickestMs([cli, '--help']);
    console.log(`perch --help: ${Math.round(help)} ms; Node alone: ${Math.round(bare)} ms`);
    expect(help).toBeLessThan(Math.max(150, bare * 2));
  });
});
