import type { RouteRollout } from '@perch/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { route } from '../../bench/control-stub.mjs';
import { missingReason } from '../support/real-parts.ts';
import { type ModelServer, startTriton } from '../support/real-triton.ts';
import { type Answer, loadScale, RouterStand, scaleTarget } from './router-stand.ts';

/** What the model server really writes: NaN in JSON, classes in the place of scores, outputs that were asked for. */
describe.skipIf(missingReason('triton'))('replies of a real Triton held against their contract', () => {
  let triton: ModelServer;
  let stand: RouterStand;
  const factors = { same: 1, nan: Number.NaN, infinite: Number.POSITIVE_INFINITY };

  beforeAll(async () => {
    triton = await startTriton();
    stand = await RouterStand.start();
    for (const [name, factor] of Object.entries({ 'scale-v1': 1, ...factors })) await loadScale(triton, name, factor);
    const endpoints = Object.fromEntries(
      Object.keys(factors).map((name) => {
        const targets = [
          scaleTarget(1, ['a'], { deployment: `${name}-s` }),
          scaleTarget(2, ['a'], { deployment: `${name}-c`, tritonModel: name }),
        ];
        const rollout: RouteRollout = {
          id: name,
          epoch: 1,
          stable: `${name}-s`,
          candidate: `${name}-c`,
          salt: 'salt',
          leaseMs: 60_000,
          slowMs: null,
          slowGraceMs: 0,
          metrics: ['contract'],
          fallback: { budgetPercent: 100 },
          shadow: null,
          feedbackKey: null,
        };
        return [name, route(targets, { arms: [{ deployment: `${name}-c`, share: 1 }], rollout })];
      }),
    );
    await stand.publish({ servers: { a: { http: triton.http, grpc: triton.grpc } }, endpoints });
  }, 90_000);
  afterAll(async () => {
    await stand?.stop();
    await triton?.remove();
  });

  const input = { name: 'x', datatype: 'FP32', shape: [1, 4], data: [1, 2, 3, 4] };
  const infer = (name: string, fields: object = {}) =>
    stand.post(`/v2/models/${name}/infer`, { inputs: [input], ...fields });
  const forms: [string, (name: string) => Promise<Answer>][] = [
    ['/serve', (name) => stand.post(`/serve/${name}`, { x: [[1, 2, 3, 4]] })],
    ['/v2 in JSON', (name) => infer(name)],
    ['/v2 in binary', (name) => infer(name, { parameters: { binary_data_output: true } })],
    ['/v2 with the outputs named', (name) => infer(name, { outputs: [{ name: 'y' }] })],
  ];
  const armOf = async (send: (name: string) => Promise<Answer>, name: string) => {
    const { status, headers } = await send(name);
    return `${status} ${headers.get('x-perch-arm')}`;
  };

  it.each(forms)('%s: a good candidate answers, one of NaN or +∞ is answered for', async (_form, send) => {
    expect(await armOf(send, 'same')).toBe('200 candidate');
    expect(await armOf(send, 'nan')).toBe('200 stable; fallback');
    expect(await armOf(send, 'infinite')).toBe('200 stable; fallback');
  });

  it('lets classes pass in the place of scores, as the request wants them', async () => {
    const classes = (name: string) => infer(name, { outputs: [{ name: 'y', parameters: { classification: 2 } }] });
    expect(await armOf(classes, 'same')).toBe('200 candidate');
  });

  it('charges each reply once', async () => {
    await stand.untilReport(() => stand.control.evidence.get('infinite 1 0')?.candidate.ended['contract']?.x === 4);
    for (const [name, x] of [['same', 0], ['nan', 4]] as const) {
      const told = stand.control.evidence.get(`${name} 1 0`)!;
      expect([name, told.candidate.ended['contract']!.x, told.fallbacks]).toEqual([name, x, x]);
    } // biome-ignore format: a table
  });
});
