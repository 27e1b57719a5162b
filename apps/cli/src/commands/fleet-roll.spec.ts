import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AppError, type Server } from '@perch/contracts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Call } from '../admin.client.ts';
import type { Invocation } from '../invocation.ts';
import { rollReason } from '../roll.plan.ts';
import { roll } from './fleet-roll.ts';

/** A control plane of three servers: what is drained is drained at once, and each look at a server is a later word of it. */
class FakeFleet {
  readonly target = { url: 'http://control' };
  readonly servers = ['a', 'b', 'c'].map((name) => this.server(name));
  readonly calls: string[] = [];
  /** Most servers that were out of service at once. */
  most = 0;
  private words = 0;
  restarts = true;

  private server(name: string) {
    const triton = { live: true, ready: true, name: 'triton', version: '2.51.0', gpus: 0 };
    const observed = {
      lineage: null,
      revision: 1,
      heldRemovals: [],
      triton,
      models: {},
      disk: { freeBytes: 1, cacheBytes: 1 },
    };
    return {
      id: name, name, pool: 'p', http: `${name}:8000`, grpc: `${name}:8001`, labels: {}, live: true, lastSeenAt: '0' as string | null,
      desiredRevision: 1, bootId: 'b0', observed, drain: null as Server['drain'],
    }; // biome-ignore format: one record
  }

  async list() {
    return structuredClone(this.servers);
  }

  async call(path: string, { method = 'GET', body }: Call = {}) {
    const [, , key, verb] = path.split('/');
    const server = this.servers.find(({ name }) => name === key)!;
    if (method === 'POST') this.calls.push(`${key} ${verb}`);
    if (verb === 'drain') {
      const { reason } = body as { reason: string };
      server.drain = { since: 'now', by: 'me', reason, drained: true, waitsFor: [] };
      this.most = Math.max(this.most, this.servers.filter(({ drain }) => drain).length);
    }
    if (verb === 'undrain') server.drain = null;
    server.lastSeenAt = String(++this.words);
    const answer = structuredClone(server);
    // Somebody restarts what is out of service.
    if (this.restarts && server.drain) server.bootId = `b${this.words}`;
    return answer;
  }
}

let fleet: FakeFleet;
let folder: string;
let notes: string[];
const run = (options: object, args = ['p']) => {
  const environment = { PATH: process.env['PATH'] };
  const invocation = {
    admin: async () => fleet,
    note: (line: string) => void notes.push(line),
    settings: { configDir: folder, environment },
  };
  return roll(invocation as unknown as Invocation, args, { wait: '2s', ...options });
};
const log = () => readFileSync(join(folder, 'log'), 'utf8').trim().split('\n');
const hook = () => `echo "$PERCH_SERVER_NAME $PERCH_SERVER_ID $PERCH_SERVER_HTTP" >> ${join(folder, 'log')}`;

beforeEach(() => {
  fleet = new FakeFleet();
  folder = mkdtempSync(join(tmpdir(), 'perch-roll-'));
  notes = [];
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('perch fleet roll', () => {
  it('drains, runs the hook, waits and undrains, one server after another', async () => {
    const shown = await run({ exec: hook() });
    expect(fleet.calls).toEqual(['a drain', 'a undrain', 'b drain', 'b undrain', 'c drain', 'c undrain']);
    expect(log()).toEqual(['a a a:8000', 'b b b:8000', 'c c c:8000']);
    expect(fleet.most).toBe(1);
    expect(shown!.value).toEqual({ pool: 'p', rolled: ['a', 'b', 'c'], skipped: [] });
  });

  it('so many at once as it may', async () => {
    await run({ exec: hook(), maxUnavailable: '2' });
    expect(fleet.most).toBe(2);
    expect(log()).toHaveLength(3);
  });

  it('without a hook it waits until somebody has restarted each server', async () => {
    await run({});
    expect(fleet.calls).toHaveLength(6);
    fleet.restarts = false;
    await expect(run({ wait: '0.3s' })).rejects.toMatchObject({
      code: 'timeout',
      message: expect.stringContaining('it was not restarted yet'),
    });
  });

  it('stops at a hook that fails and leaves that server out of service; the next run begins there and redoes nothing', async () => {
    const failing = `${hook()}; test "$PERCH_SERVER_NAME" != b`;
    const failure = await run({ exec: failing }).catch((error: unknown) => error as AppError);
    expect(failure).toBeInstanceOf(AppError);
    expect(failure).toMatchObject({
      code: 'upstream',
      message: expect.stringContaining('server b failed (exit code 1)'),
    });
    expect(fleet.servers.map(({ drain }) => drain?.reason ?? null)).toEqual([null, rollReason, null]);
    await run({ exec: hook() });
    expect(log().map((line) => line[0])).toEqual(['a', 'b', 'b', 'c']);
    expect(notes).toContain('a: left alone (done before)');
    await run({ exec: hook() });
    expect(log()).toHaveLength(7);
  });

  it('says what it was asked wrongly', async () => {
    await expect(run({ maxUnavailable: '0' })).rejects.toMatchObject({ code: 'invalid' });
    await expect(run({}, ['nowhere'])).rejects.toMatchObject({ code: 'not_found' });
  });
});
