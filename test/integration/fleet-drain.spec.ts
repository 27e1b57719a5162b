import { DrainService, FleetViewService } from '@perch/fleet';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type FakeAgent, type FakeRouter, FleetWorld, operator, ruleSpec } from '../support/fleet.ts';

let world: FleetWorld;
let first: FakeAgent;
let second: FakeAgent;
let router: FakeRouter;
const agents = () => [first, second];
const converge = (some: readonly FakeAgent[] = agents()) => world.converge(some, [router]);
const drain = (name: string, force = false) =>
  world.get(DrainService).drain(operator, name, { reason: 'new driver', force });
const show = (name: string) => world.get(FleetViewService).show(name);
const serversOf = (endpoint: string) =>
  (router.table!.endpoints[endpoint]?.targets ?? []).flatMap(({ servers }) => servers);
/** Where the one replica of text/a went, and the other server. */
async function serveOne(): Promise<[FakeAgent, FakeAgent]> {
  await world.apply(ruleSpec('text/a', 'nlp/a', quick));
  await world.versions.put('nlp/a');
  await converge();
  return serversOf('text/a')[0] === first.id ? [first, second] : [second, first];
}
/** Requests settle at once. */
const quick = { limits: { timeoutMs: 1 } };

beforeEach(async () => {
  world = await FleetWorld.start();
  first = await world.agent('s1');
  second = await world.agent('s2');
  router = await world.router('r1');
});
afterEach(() => world.close());

describe('a server that is drained', () => {
  it('loses a deployment when it is ready elsewhere, and is drained when no router sends to it', async () => {
    const [holder, other] = await serveOne();
    other.behaviour.set('a-', 'loading');
    await drain(holder.name);
    await converge();
    expect(serversOf('text/a')).toEqual([holder.id]);
    expect((await show(holder.name)).drain).toMatchObject({
      by: 'olga',
      reason: 'new driver',
      drained: false,
      waitsFor: [`text/a: to be ready on ${other.name}`],
    });
    other.behaviour.clear();
    await world.converge(agents(), []);
    expect((await show(holder.name)).drain).toMatchObject({
      drained: false,
      waitsFor: ['text/a: routers to send no more requests here'],
    });
    await converge();
    expect(serversOf('text/a')).toEqual([other.id]);
    expect((await show(holder.name)).drain).toMatchObject({ drained: true, waitsFor: [] });
    expect(holder.models).toEqual([]);
    expect(world.noted.map(({ action }) => action)).toContain('server.drain');
  });

  it('gets nothing new, and again when it is put back in service', async () => {
    await drain('s1');
    await drain('s2');
    await world.apply(ruleSpec('text/a', 'nlp/a'));
    await world.versions.put('nlp/a');
    await converge();
    expect((await world.endpoint('text/a')).status.message).toContain(
      'wants 1 server, none can hold it (s1, s2: is being drained)',
    );
    await world.get(DrainService).undrain(operator, second.id, 'done');
    await converge();
    expect(serversOf('text/a')).toEqual([second.id]);
  });

  it('keeps serving when nothing else can, says so, and goes all the same when it is forced', async () => {
    await world.apply(ruleSpec('text/a', 'nlp/a', { ...quick, fleet: { replicas: 2, minReplicas: 2 } }));
    await world.versions.put('nlp/a');
    await converge();
    await drain('s1');
    await converge();
    expect(serversOf('text/a').sort()).toEqual([first.id, second.id].sort());
    expect((await show('s1')).drain!.waitsFor[0]).toMatch(/^text\/a: another server that can hold it/);
    await drain('s1', true);
    await converge();
    expect(serversOf('text/a')).toEqual([second.id]);
    expect((await show('s1')).drain).toMatchObject({ drained: true, forced: true });
  });

  it('leaves with what is ready elsewhere already when no more can be had, down to minReplicas', async () => {
    await world.apply(ruleSpec('text/a', 'nlp/a', { ...quick, fleet: { replicas: 2 } }));
    await world.versions.put('nlp/a');
    await converge();
    await drain('s1');
    await converge();
    expect(serversOf('text/a')).toEqual([second.id]);
    expect((await show('s1')).drain!.drained).toBe(true);
    await world.get(DrainService).undrain(operator, 's1', '');
    await converge();
    expect(serversOf('text/a')).toHaveLength(2);
  });

  it('a server whose agent was told to end drains itself, hears that it is drained, and is back with its next start', async () => {
    const [holder] = await serveOne();
    holder.leaving = true;
    expect((await holder.report()).drained).toBe(false);
    await converge();
    expect((await show(holder.name)).drain).toMatchObject({ by: 'system', drained: true });
    expect((await holder.report()).drained).toBe(true);
    holder.leaving = false;
    expect((await holder.report()).drained).toBeUndefined();
    expect((await show(holder.name)).drain).toBeNull();
  });

  it('a drain by a person outlives the restart of its agent', async () => {
    await drain('s1');
    first.leaving = true;
    await first.report();
    first.leaving = false;
    await first.report();
    expect((await show('s1')).drain).toMatchObject({ by: 'olga' });
  });

  it('says which server it does not know', async () => {
    await expect(drain('s9')).rejects.toMatchObject({ code: 'not_found' });
    await expect(show('s9')).rejects.toMatchObject({ code: 'not_found' });
  });
});
