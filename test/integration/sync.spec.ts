import { access, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { scaleModel, unknownOperatorModel } from '../support/onnx.ts';
import { missingReason } from '../support/real-parts.ts';
import { engineServer, realTriton, Site } from './sync-stand.ts';

const until = (check: () => unknown, timeout = 30_000) => vi.waitFor(check, { timeout, interval: 20 });

for (const { kind, open, missing, kills } of [
  { kind: 'the embedded engine', open: engineServer, missing: undefined, kills: 4 },
  { kind: 'a real Triton', open: realTriton, missing: missingReason('triton'), kills: 2 },
]) {
  describe.skipIf(missing)(`an agent beside ${kind}`, () => {
    let site: Site;
    beforeAll(async () => {
      site = await Site.open(open);
      await site.start();
    });
    afterAll(() => site?.close());

    const ready = (...names: string[]) =>
      until(() => expect(names.map((name) => site.stateOf(name))).toEqual(names.map(() => 'ready')));

    it('enrols, serves what is published, and reports what the model says about itself', async () => {
      const [name, model] = site.stand.model(scaleModel(2), 1);
      site.stand.publish({ [name]: model });
      await ready(name);
      expect(await site.infer(name, [1, 2, 3, 4])).toEqual([2, 4, 6, 8]);
      expect(site.stand.enrolments).toEqual([
        {
          kind: 'server',
          name: 'server-a',
          labels: { zone: 'a', kind: 'test' },
          http: site.server.http,
          grpc: site.server.grpc,
          previousLineage: null,
        },
      ]);
      expect(site.stand.state).toMatchObject({
        lineage: site.stand.document.lineage,
        revision: 1,
        heldRemovals: [],
        triton: { live: true, gpus: 0 },
        models: {
          [name]: {
            reason: null,
            maxBatchSize: 8,
            inputs: [{ name: 'x', datatype: 'FP32', shape: [-1, 4] }],
            outputs: [{ name: 'y', datatype: 'FP32', shape: [-1, 4] }],
          },
        },
      });
      await until(async () => expect(await site.health()).toMatchObject({ ready: true }));
    });

    it('asks the golden requests of a version before it is ready, and says which output differs', async () => {
      const before = site.stand.document.models;
      const request = { inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 4], data: [[1, 2, 3, 4]] }] };
      const ask = (data: number[]) => ({ request, outputs: [{ name: 'y', datatype: 'FP32', shape: [1, 4], data }] });
      const [good, model] = site.stand.model(
        scaleModel(5),
        5,
        {},
        { 'golden/four.json': JSON.stringify(ask([5, 10, 15, 20])) },
      );
      const [bad, worse] = site.stand.model(
        scaleModel(6),
        6,
        {},
        { 'golden/four.json': JSON.stringify(ask([5, 10, 15, 20])) },
      );
      const refused = { ...ask([1, 1, 1, 1]), request: { inputs: [{ ...request.inputs[0]!, name: 'z' }] } };
      const [odd, oddModel] = site.stand.model(scaleModel(7), 7, {}, { 'golden/odd.json': JSON.stringify(refused) });
      site.stand.publish({ ...before, [good]: model, [bad]: worse, [odd]: oddModel });
      await ready(good);
      await until(() => expect([bad, odd].map((name) => site.stateOf(name))).toEqual(['failed', 'failed']));
      const { models } = site.stand.state!;
      expect(models[bad]!.reason).toBe(
        'golden request four: output y differs at [0,0]: wanted 5, got 6 (and 3 more of 4)',
      );
      expect(models[odd]!.reason).toMatch(/^golden request odd: the model refused it: .*'?z'?/);
      site.stand.publish(before);
      await until(() => expect(Object.keys(site.stand.state!.models)).toEqual(Object.keys(before)));
    });

    it('adds by a patch, and takes away by unloading first', async () => {
      const before = site.stand.document.models;
      const [added, model] = site.stand.model(scaleModel(3), 2);
      site.stand.publish({ ...before, [added]: model });
      await ready(added);
      expect(await site.infer(added, [1, 1, 1, 1])).toEqual([3, 3, 3, 3]);
      site.stand.publish({ [added]: model });
      const [gone] = Object.keys(before);
      await until(() => expect(Object.keys(site.stand.state!.models)).toEqual([added]));
      expect(await site.infer(gone!, [1, 1, 1, 1])).toBeUndefined();
      await until(async () => expect(await readdir(site.server.repository)).toEqual([added]));
      expect(await site.infer(added, [1, 1, 1, 1])).toEqual([3, 3, 3, 3]);
    });

    it('reports a bad model with the server’s own words while the neighbour serves', async () => {
      const before = site.stand.document.models;
      const corrupt = Buffer.from(scaleModel(5)).fill(0xff, 20, 60);
      const [broken, brokenModel] = site.stand.model(corrupt, 3);
      const [unknown, unknownModel] = site.stand.model(unknownOperatorModel(), 4, {
        inputs: [],
        outputs: [],
        maxBatchSize: 0,
      });
      const [good, goodModel] = site.stand.model(scaleModel(6), 5);
      site.stand.publish({ ...before, [broken]: brokenModel, [unknown]: unknownModel, [good]: goodModel });
      await ready(good, ...Object.keys(before));
      await until(() => expect([broken, unknown].map((name) => site.stateOf(name))).toEqual(['failed', 'failed']));
      for (const name of [broken, unknown])
        expect(site.stand.state!.models[name]!.reason).toMatch(/onnx|protobuf|parse/i);
      expect(site.stand.state!.models[broken]!.reason).not.toMatch(/^load failed for model/);
      expect(await site.infer(good, [1, 1, 1, 1])).toEqual([6, 6, 6, 6]);
      site.stand.publish(before);
      await until(async () => expect(await readdir(site.server.repository)).toEqual(Object.keys(before)));
    });

    it('brings everything back after a SIGKILL of the model server, while the control plane is away', async () => {
      const models = Object.fromEntries([7, 8].map((factor) => site.stand.model(scaleModel(factor), factor)));
      site.stand.publish(models);
      await ready(...Object.keys(models));
      site.stand.away = true;
      const pulled = site.stand.gets.length;
      await site.server.kill('SIGKILL');
      await until(async () => expect(await site.health()).toMatchObject({ ready: false }));
      await site.server.start();
      for (const name of Object.keys(models))
        await until(async () => expect(await site.infer(name, [1, 1, 1, 1])).toBeDefined());
      expect(site.stand.gets.length).toBe(pulled);
      site.stand.away = false;
      await ready(...Object.keys(models));
    });

    it('starts from its stored document while the control plane is away', async () => {
      const names = Object.keys(site.stand.document.models);
      site.stand.away = true;
      await site.agent.stop('SIGKILL');
      await site.server.kill('SIGKILL');
      await site.start();
      for (const name of names) await until(async () => expect(await site.infer(name, [1, 1, 1, 1])).toBeDefined());
      site.stand.away = false;
      const reports = site.stand.observed.length;
      await until(() => expect(site.stand.observed.length).toBeGreaterThan(reports));
      expect(names.map((name) => site.stateOf(name))).toEqual(names.map(() => 'ready'));
      expect(site.stand.enrolments).toHaveLength(1);
    });

    it('reaches the same state when the agent is killed again and again on the way', async () => {
      const wanted = Object.fromEntries(
        Array.from({ length: kills }, (_, n) => site.stand.model(scaleModel(20 + n), 20 + n)),
      );
      site.stand.publish(wanted);
      for (let n = 0; n < kills; n += 1) {
        await new Promise((resolve) => setTimeout(resolve, 40 * n));
        await site.agent.crash();
      }
      await ready(...Object.keys(wanted));
      for (const [name, { files }] of Object.entries(wanted)) {
        await access(join(site.folder, 'data/cache/blobs', files[0]!.sha256));
        expect(await site.infer(name, [1, 1, 1, 1])).toBeDefined();
      }
      await until(async () =>
        expect((await readdir(site.server.repository)).sort()).toEqual(Object.keys(wanted).sort()),
      );
      expect(Object.keys(site.stand.state!.models).sort()).toEqual(Object.keys(wanted).sort());
    });

    it('never reports a served model as anything else over a restart of the agent', async () => {
      const names = Object.keys(site.stand.document.models);
      const reports = site.stand.observed.length;
      await site.agent.crash();
      await until(() => expect(site.stand.observed.length).toBeGreaterThan(reports));
      for (const { models } of site.stand.observed.slice(reports))
        expect(names.map((name) => models[name]?.state)).toEqual(names.map(() => 'ready'));
    });

    it('stops gracefully and leaves the models served', async () => {
      const [name] = Object.keys(site.stand.document.models);
      await site.agent.stop('SIGTERM');
      expect(await site.infer(name!, [1, 1, 1, 1])).toBeDefined();
      await site.agent.start();
    });
  });
}
