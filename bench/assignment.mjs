/** What a rollout adds to a request in the router: putting it on an arm and counting what becomes of it. */
import { compileRoute } from '@perch/routing';
import { assign } from '../apps/router/dist/serving/assign.js';
import { EvidenceBook } from '../apps/router/dist/serving/evidence-book.js';
import { EvidenceLease, monotonicMs } from '../apps/router/dist/serving/evidence-lease.js';
import { FirstAttempt } from '../apps/router/dist/serving/first-attempt.js';
import { route, target } from './control-stub.mjs';
import { median } from './measure.mjs';

const requests = 50_000;
/** So that a cohort is closed and the counts are told every 2,000 requests. */
const perSecond = 2_000;
const keys = Array.from({ length: 5_000 }, (_, at) => `${at.toString(16).padStart(8, '0')}-5d1f-4c5e-9a54-0f6c1de2b7aa`);
const rollout = {
  id: 'r', epoch: 1, stable: 'a', candidate: 'b', salt: 'salt', leaseMs: 1e9, slowMs: 100, slowGraceMs: 0,
  metrics: ['slow', 'contract', 'low_confidence'], fallback: null, shadow: null, feedbackKey: null,
}; // biome-ignore format: one record

const targets = ['a', 'b'].map((deployment, at) => target({ deployment, version: at + 1, tritonModel: deployment, servers: ['s'] }));
const routeWith = (fields) => {
  const arms = targets.map(({ deployment }) => ({ deployment, share: 0.5 }));
  return compileRoute('e', route(targets, { arms, ...fields }));
};
const sticky = { header: 'x-user-id', salt: 's' };
const cases = {
  plain: routeWith({}),
  drawn: routeWith({ rollout }),
  keyed: routeWith({ rollout: { ...rollout, id: 'keyed' }, sticky }),
};

/** What `assign` and the book read of a call; `route` is set for each request, as the router does. */
class Request {
  pin = undefined;
  bucket = -1;
  lapsed = false;
  side = undefined;
  draw = Math.random();

  constructor(compiled, exchange) {
    this.route = compiled;
    this.exchange = exchange;
  }
}

/** CPU microseconds of one request of a case, reports included. */
function measure(compiled, book, lease, start) {
  const exchanges = keys.map((key) => ({ head: { headers: { [sticky.header]: key } } }));
  const before = process.cpuUsage();
  let found = 0;
  for (let at = 0; at < requests; at += 1) {
    const call = new Request(compiled, exchanges[at % exchanges.length]);
    if (assign(call, lease)) found += 1;
    const now = start + (at * 1_000) / perSecond;
    const trial = call.side === undefined ? undefined : book.begin(call, now);
    if (trial) {
      const first = new FirstAttempt(compiled.rollout, trial, 10_000, true);
      first.judged(false);
      first.answered(now + 5);
    }
    if (at % perSecond === perSecond - 1) book.changed(now);
  }
  const { user, system } = process.cpuUsage(before);
  if (found !== requests) throw new Error('a request found no arm');
  return (user + system) / requests;
}

/** The cases in turns, so that what else the machine does falls on all of them. */
export function measureAssignment({ rounds, say }) {
  const lease = new EvidenceLease();
  lease.accepted(monotonicMs());
  const book = new EvidenceBook(lease);
  const micros = { plain: [], drawn: [], keyed: [] };
  let start = performance.now();
  for (let round = -2; round < rounds; round += 1)
    for (const name of Object.keys(cases)) {
      const each = measure(cases[name], book, lease, start);
      start += (requests * 1_000) / perSecond + 20_000;
      if (round >= 0) micros[name].push(each);
    }
  const added = (name) => median(micros[name].map((value, round) => value - micros.plain[round]));
  for (const name of Object.keys(cases)) say(`median: ${name}: ${median(micros[name]).toFixed(3)} µs of CPU a request`);
  return [
    { name: 'assignment and counting, each request drawn', value: added('drawn'), unit: 'µs', budget: 2 },
    { name: 'assignment and counting, by sticky key', value: added('keyed'), unit: 'µs', budget: 2 },
  ];
}
