import { randomUUID } from 'node:crypto';
import type { Actor, EndpointSpecInput } from '@perch/contracts';
import { EndpointService, ModuleUsersService, ProcessingSource, WhyService } from '@perch/endpoints';
import { RouterService } from '@perch/fleet';
import { Transactions } from '@perch/platform/database';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FakeAgent, type FakeRouter, FleetWorld, operator, ruleSpec } from '../support/fleet.ts';

const as = (role: Actor['role']): Actor => ({ ...operator, name: `the ${role}`, role });
const process = { hooks: ['process'] as ['process'] };
const noModelFiles = [{ path: 'labels.txt', sha256: 'c'.repeat(64), size: 3 }];

describe('endpoints with processing modules', () => {
  let world: FleetWorld;
  let agent: FakeAgent;
  let router: FakeRouter;
  beforeAll(async () => {
    world = await FleetWorld.start();
    agent = await world.agent('s1');
    router = await world.router('r1');
  });
  afterAll(() => world.close());

  const converge = () => world.converge([agent], [router]);
  const apply = (spec: EndpointSpecInput, actor = operator) => world.get(EndpointService).apply(actor, spec);
  const target = (name: string) => router.table!.endpoints[name]!.targets[0]!;
  const module = (name: string) => {
    const { processing } = target(name);
    return processing.module ? `${processing.module.name}@${processing.module.number}` : processing.builtin;
  };
  /** As a router that cannot load a module: it tells so, and goes on with what it served (`kept`). */
  function cannotLoad(name: string, number: number, words: string, kept: string): () => void {
    const report = router.report.bind(router);
    router.report = async () => {
      const targets = Object.values(router.table!.endpoints).flatMap((route) => route.targets);
      const isBad = ({ processing: { module } }: (typeof targets)[number]) =>
        module?.name === name && module.number === number;
      const problems = Object.fromEntries(
        targets.filter(isBad).map(({ deployment }) => [deployment, `module ${name}@${number}: ${words}`]),
      );
      const inFlight = kept === '' || targets.some(({ deployment }) => deployment === kept) ? {} : { [kept]: 1 };
      const { lineage, revision } = router.table!;
      const body = { lineage, revision, inFlight, problems, held: false };
      await world.get(RouterService).report(router.id, { bootId: 'b1', hash: randomUUID(), report: body });
    };
    return () => {
      router.report = report;
    };
  }
  const why = async (name: string) => (await world.get(WhyService).why(name, null)).chain;

  it('writes a bare name as the newest number, so that history tells what ran', async () => {
    world.modules.put('ner/rules', 'one');
    world.modules.put('ner/rules', 'two');
    await world.versions.put('p/a');
    await apply(ruleSpec('m/a', 'p/a', { processing: { module: 'ner/rules' } }));
    const spec = async () => (await world.endpoint('m/a')).spec.processing;
    expect(await spec()).toEqual({ module: 'ner/rules@2' });
    world.modules.put('ner/rules', 'three');
    await apply(ruleSpec('m/a', 'p/a', { processing: { module: 'ner/rules@2' } }));
    expect((await world.endpoint('m/a')).generation).toBe(1);
    await apply(ruleSpec('m/a', 'p/a', { processing: { module: 'ner/rules' } }));
    expect(await spec()).toEqual({ module: 'ner/rules@3' });
    await expect(apply(ruleSpec('m/a', 'p/a', { processing: { module: 'ner/rules@7' } }))).rejects.toMatchObject({
      code: 'not_found',
      message:
        'endpoint m/a: processing.module: there is no processing module ner/rules@7; of ner/rules there are 3, 2, 1',
    });
    await expect(apply(ruleSpec('m/a', 'p/a', { processing: { module: 'ner/rulez' } }))).rejects.toMatchObject({
      code: 'not_found',
      message: expect.stringContaining('there is no processing module ner/rulez; "perch processing list"'),
    });
  });

  it('hands routers the module with its files, and lets them fetch these and no others', async () => {
    await converge();
    expect(target('m/a').processing).toEqual({
      module: expect.objectContaining({ name: 'ner/rules', number: 3, digest: expect.any(String) }),
      isolation: 'worker',
      options: {},
    });
    const [one, , three] = world.modules.records.map(({ files }) => files[0]!.sha256) as [string, string, string];
    expect(await world.get(RouterService).tableHashes([one, three])).toEqual(new Set([three]));
    const [deployment] = (await world.endpoint('m/a')).deployments;
    expect(deployment!.processing).toEqual({ module: 'ner/rules@3', isolation: 'worker' });
  });

  it('makes a new deployment for another module, isolation or option: the same model is not loaded again', async () => {
    const seen = new Set([target('m/a').deployment]);
    const loaded = [...agent.held.values()].map(({ since }) => since);
    for (const processing of [
      { module: 'ner/rules@2' },
      { module: 'ner/rules@2', isolation: 'process' as const },
      { module: 'ner/rules@2', isolation: 'process' as const, options: { k: 1 } },
    ]) {
      await apply(ruleSpec('m/a', 'p/a', { processing }));
      await converge();
      expect(await world.states('m/a')).toEqual(['1 ready']);
      seen.add(target('m/a').deployment);
    }
    expect(seen.size).toBe(4);
    expect([...agent.held.values()].map(({ since }) => since)).toEqual(loaded);
  });

  it('takes the same module under another number for the same', async () => {
    world.modules.put('same/a', 'text');
    world.modules.put('same/a', 'other text');
    world.modules.put('same/a', 'text');
    await world.versions.put('p/same');
    await apply(ruleSpec('m/same', 'p/same', { processing: { module: 'same/a@1' } }));
    await converge();
    const { deployment } = target('m/same');
    await apply(ruleSpec('m/same', 'p/same', { processing: { module: 'same/a@3' } }));
    await converge();
    expect(target('m/same').deployment).toBe(deployment);
  });

  it('fails with words when the module is gone that a new deployment needs, and what serves goes on', async () => {
    const gone = world.modules.put('gone/a', 'g');
    await world.versions.put('p/gone');
    await apply(ruleSpec('m/gone', 'p/gone', { processing: { module: 'gone/a' } }));
    await converge();
    world.modules.records.splice(world.modules.records.indexOf(gone), 1);
    await converge();
    expect(await world.states('m/gone')).toEqual(['1 ready']);
    await world.versions.put('p/gone');
    await converge();
    expect(await world.states('m/gone')).toEqual(['2 failed', '1 ready']);
    expect((await world.endpoint('m/gone')).status.message).toBe(
      'version 2 failed: there is no processing module gone/a; "perch processing list" shows those that there are; version 1 serves',
    );
    expect((await why('m/gone')).at(-1)).toMatchObject({
      step: 'deployment',
      message: expect.stringContaining('there is no processing module gone/a'),
      whatToDo: expect.stringContaining('processing'),
    });
  });

  it('a module that a router cannot load takes nothing away, and says why until it is put right', async () => {
    world.modules.put('bad/a', 'works');
    await world.versions.put('p/bad');
    await apply(ruleSpec('m/bad', 'p/bad', { processing: { module: 'bad/a@1' } }));
    await converge();
    const old = target('m/bad').deployment;
    world.modules.put('bad/a', 'throws');
    const mend = cannotLoad('bad/a', 2, 'x is not defined', old);
    await apply(ruleSpec('m/bad', 'p/bad', { processing: { module: 'bad/a@2' } }));
    await converge();
    await converge();
    expect(await world.states('m/bad')).toEqual(['1 failed', '1 ready']);
    expect(router.table!.endpoints['m/bad']!.arms).toEqual([{ deployment: old, share: 1 }]);
    expect(router.table!.endpoints['m/bad']!.targets).toHaveLength(2);
    expect((await world.endpoint('m/bad')).status.message).toBe(
      'version 1 failed: router r1: module bad/a@2: x is not defined; version 1 serves',
    );
    mend();
    await converge();
    expect(await world.states('m/bad')).toEqual(['1 ready']);
    expect(module('m/bad')).toBe('bad/a@2');
  });

  it('lets the role of the key choose where a module may run', async () => {
    await world.versions.put('p/iso');
    const spec = (isolation: 'inline' | 'worker' | 'process', more: object = {}) =>
      ruleSpec('m/iso', 'p/iso', { processing: { module: 'ner/rules@1', isolation }, ...more });
    await expect(apply(spec('inline'))).rejects.toMatchObject({
      code: 'forbidden',
      message:
        'endpoint m/iso: processing.isolation inline runs module ner/rules@1 inside the router, among all endpoints: only an admin may choose it, and key olga is an operator; use worker or process',
    });
    await apply(spec('process'));
    await apply(spec('inline'), as('admin'));
    await apply(spec('inline', { description: 'an operator may change the rest' }));
    await expect(
      apply(ruleSpec('m/iso', 'p/iso', { processing: { module: 'ner/rules@2', isolation: 'inline' } })),
    ).rejects.toMatchObject({ code: 'forbidden' });
    await expect(
      world
        .get(ProcessingSource)
        .settle(as('publisher'), 'version of p/iso', { module: 'ner/rules', isolation: 'inline' }),
    ).rejects.toMatchObject({ code: 'forbidden', message: expect.stringContaining('is a publisher') });
  });

  it('runs what the version carries where the endpoint says nothing', async () => {
    await world.versions.put('p/own', { processing: { module: 'ner/rules@1' } });
    await apply(ruleSpec('m/own', 'p/own'));
    await converge();
    expect([module('m/own'), (await world.endpoint('m/own')).spec.processing]).toEqual(['ner/rules@1', undefined]);
    await world.versions.put('p/own', { processing: { module: 'ner/rules@3', isolation: 'process' } });
    await converge();
    expect([module('m/own'), target('m/own').version]).toEqual(['ner/rules@3', 2]);
    await world.versions.put('p/own');
    await converge();
    expect(module('m/own')).toBe('passthrough');
    await apply(ruleSpec('m/own', 'p/own', { processing: { module: 'ner/rules@2' } }));
    await converge();
    expect(module('m/own')).toBe('ner/rules@2');
  });

  it('names everybody who holds a module back', async () => {
    const users = (name: string, number: number) =>
      world.get(ModuleUsersService).usersOf(world.get(Transactions).manager, { name, number });
    expect(await users('ner/rules', 2)).toEqual(['endpoint m/a', 'endpoint m/own']);
    expect(await users('ner/rules', 3)).toEqual(['endpoint m/a (generation 2, which may be rolled back to)']);
    expect(await users('gone/a', 1)).toEqual(['endpoint m/gone']);
    expect(await users('never/used', 1)).toEqual([]);
  });

  it('a change of the module alone is a candidate of a progressive endpoint', async () => {
    await world.versions.put('p/trial');
    const spec = (module: string) =>
      ruleSpec('m/trial', 'p/trial', { processing: { module }, traffic: { mode: 'progressive' } });
    await apply(spec('ner/rules@1'));
    await converge();
    await apply(spec('ner/rules@2'));
    await converge();
    expect(await world.states('m/trial')).toEqual(['1 ready', '1 ready']);
    expect((await world.endpoint('m/trial')).status.message).toMatch(
      /^version 1 serves; version 1 with module ner\/rules@2 (is ready for its trial|on trial with)/,
    );
  });

  describe('without a model', () => {
    const modelless = (name: string, model: string, more: Partial<EndpointSpecInput> = {}) =>
      ruleSpec(name, model, { engine: { platform: 'custom' }, processing: { module: 'work/a' }, ...more });
    beforeAll(async () => {
      world.modules.put('work/a', 'works', process);
      world.modules.put('work/b', 'works elsewhere', { hooks: ['load', 'process'] });
      await world.versions.put('p/none', { files: noModelFiles });
    });

    it('is ready without placement or servers', async () => {
      await apply(modelless('w/a', 'p/none'));
      await converge();
      expect(await world.states('w/a')).toEqual(['1 ready']);
      expect(target('w/a')).toMatchObject({ modelless: true, servers: [], inputs: [], outputs: [], maxBatchSize: 0 });
      expect(target('w/a').files).toEqual(noModelFiles);
      expect(router.arms('w/a')).toEqual(['1 1']);
      const { status, deployments } = await world.endpoint('w/a');
      expect(status).toMatchObject({ phase: 'ready', servingVersions: [1] });
      expect(deployments[0]).toMatchObject({ servers: [], modelless: true, weightPercent: 100 });
      expect(agent.models.filter((name) => name.startsWith('none-'))).toEqual([]);
      const chain = await why('w/a');
      expect(chain.every(({ state }) => state === 'ok')).toBe(true);
      expect(chain.map(({ message }) => message)).toEqual(
        expect.arrayContaining([
          'its deployment is ready (module work/a@1, isolation worker)',
          'it has no model: its module does all the work, and no server is wanted',
        ]),
      );
    });

    it('is found out where no file of the version is a model', async () => {
      await apply(ruleSpec('w/b', 'p/none', { processing: { module: 'work/a' } }));
      await converge();
      expect(target('w/b')).toMatchObject({ modelless: true, version: 1 });
    });

    it('wants a module that does the work, and says so at once where it can', async () => {
      await expect(apply(modelless('w/c', 'p/none', { processing: { module: 'ner/rules' } }))).rejects.toMatchObject({
        code: 'invalid',
        message: expect.stringMatching(
          /engine.platform custom leaves all the work to a process hook, and module ner\/rules@3 has none$/,
        ),
      });
      await apply(modelless('w/c', 'p/none', { processing: undefined }));
      await converge();
      expect((await world.endpoint('w/c')).status.message).toMatch(
        /its processing wants a module with a process hook.*passthrough has none/,
      );
    });

    it('another module takes over without a gap, and the old one stays until routers have let go of it', async () => {
      const old = target('w/a').deployment;
      await apply(modelless('w/a', 'p/none', { processing: { module: 'work/b' } }));
      router.inFlight = { [old]: 2 };
      await converge();
      expect(await world.states('w/a')).toEqual(['1 ready', '1 draining']);
      expect(router.table!.endpoints['w/a']!.arms).toEqual([{ deployment: target('w/a').deployment, share: 1 }]);
      expect(module('w/a')).toBe('work/b@1');
      router.inFlight = {};
      await converge();
      expect(await world.states('w/a')).toEqual(['1 ready']);
    });

    it('fails while routers cannot load it, and serves again when they can', async () => {
      const mend = cannotLoad('work/b', 1, 'out of memory', '');
      await converge();
      expect(await world.states('w/a')).toEqual(['1 failed']);
      expect((await why('w/a')).find(({ step, state }) => step === 'router' && state === 'failed')).toMatchObject({
        message: 'router r1 cannot serve it (module work/b@1, isolation worker): module work/b@1: out of memory',
        whatToDo: expect.stringContaining('correct module work/b@1 ("perch processing test"'),
      });
      mend();
      await converge();
      expect(await world.states('w/a')).toEqual(['1 ready']);
    });

    it('needs no version of the registry: the number of its module is its version', async () => {
      const spec = (module: string, more: object = {}) =>
        ({ name: 'w/none', engine: { platform: 'custom' }, processing: { module }, ...more }) as never;
      await apply(spec('work/a'));
      await converge();
      const { spec: written, status, deployments } = await world.endpoint('w/none');
      expect(written.model).toEqual({ project: 'modules', name: 'work-a', none: true });
      expect(status).toMatchObject({ phase: 'ready', message: 'version 1 serves' });
      expect(deployments).toMatchObject([{ modelless: true, processing: { module: 'work/a@1' } }]);
      world.modules.put('work/a', 'works better', process);
      await apply(spec('work/a', { traffic: { mode: 'progressive' } }));
      await converge();
      expect(router.versions('w/none').sort()).toEqual([1, 2]);
      expect((await why('w/none')).map(({ message }) => message)).toContain(
        'it has none: its module does all the work, whose number is the version',
      );
      await apply(spec('work/a'));
      await converge();
      expect(router.versions('w/none')).toEqual([2]);
    });

    it('stops, starts and goes', async () => {
      await apply(modelless('w/a', 'p/none', { processing: { module: 'work/b' }, stopped: true }));
      await converge();
      expect(await world.states('w/a')).toEqual([]);
      await apply(modelless('w/a', 'p/none', { processing: { module: 'work/b' } }));
      await converge();
      expect(await world.states('w/a')).toEqual(['1 ready']);
      await world.get(EndpointService).remove(operator, 'w/a');
      await converge();
      expect(router.table!.endpoints['w/a']).toBeUndefined();
    });
  });
});
