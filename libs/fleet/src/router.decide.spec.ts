import { describe, expect, it } from 'vitest';
import { type RouterFacts, unloadObstacle } from './router.decide.ts';

const report = (more: object = {}) => ({
  lineage: 'L',
  revision: 20,
  inFlight: {},
  problems: {},
  held: false,
  ...more,
});
const router = (more: Partial<RouterFacts> = {}): RouterFacts => ({
  name: 'r1',
  quietMs: 100,
  report: report(),
  ...more,
});
const wish = (more: object = {}) => ({
  deployment: 'd',
  routedRevision: 10,
  unroutedRevision: 20,
  unroutedMs: 5_000,
  ...more,
});

describe('why a model must stay loaded', () => {
  it.each<[string, ReturnType<typeof wish>, RouterFacts[], string | undefined]>([
    ['no routers at all', wish(), [], undefined],
    ['the router follows a table without it', wish(), [router()], undefined],
    ['the router is behind', wish(), [router({ report: report({ revision: 19 }) })], 'router r1 has not taken'],
    ['one of two is behind', wish(), [router(), router({ name: 'r2', report: report({ revision: 19 }) })], 'router r2'],
    ['the router never reported', wish(), [router({ report: null })], 'router r1 has not taken'],
    [
      'the router follows another lineage',
      wish(),
      [router({ report: report({ lineage: 'M', revision: 99 }) })],
      'has not taken',
    ],
    ['the router holds the table back', wish(), [router({ report: report({ held: true }) })], 'unconfirmed'],
    ['requests are in flight', wish(), [router({ report: report({ inFlight: { d: 2 } }) })], '2 requests in flight'],
    ['requests of others are in flight', wish(), [router({ report: report({ inFlight: { other: 2 } }) })], undefined],
    [
      'the router was silent for the grace',
      wish(),
      [router({ quietMs: 600_001, report: report({ revision: 1 }) })],
      undefined,
    ],
    [
      'the router was silent, but not for long enough',
      wish(),
      [router({ quietMs: 599_999, report: report({ revision: 1 }) })],
      'has not taken',
    ],
    ['the table still holds it', wish({ unroutedRevision: null }), [], 'still holds it'],
    [
      'no table ever held it',
      wish({ routedRevision: null, unroutedRevision: null }),
      [router({ report: null })],
      undefined,
    ],
    ['it left a moment ago with its deployment', wish({ unroutedMs: 100 }), [router()], undefined],
    [
      'it left a moment ago and lives on elsewhere',
      wish({ server: 's', unroutedMs: 100 }),
      [router()],
      'may still arrive',
    ],
    ['it left long ago and lives on elsewhere', wish({ server: 's' }), [router()], undefined],
    [
      'it lives on elsewhere, and nothing may still come here',
      wish({ server: 's', unroutedMs: 100 }),
      [router({ report: report({ unlisted: { 'd other': 3 } }) })],
      undefined,
    ],
    [
      'it lives on elsewhere, and requests may still come here',
      wish({ server: 's', unroutedMs: 100_000 }),
      [router({ report: report({ unlisted: { 'd s': 3 } }) })],
      '3 requests in flight',
    ],
  ])('%s', (_what, what, routers, words) => {
    const obstacle = unloadObstacle(what, routers, 'L', 600_000, 1_000);
    if (words === undefined) expect(obstacle).toBeUndefined();
    else expect(obstacle).toContain(words);
  });
});
