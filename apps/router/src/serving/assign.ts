import type { RouteTarget } from '@perch/contracts';
import { bucketOf, pickTarget } from '@perch/routing';
import type { Call } from './call.ts';
import type { EvidenceLease } from './evidence-lease.ts';

/** The target that a call goes to by the table it holds; notes its bucket, its side and whether the candidate got nothing. */
export function assign(call: Call, lease: EvidenceLease): RouteTarget | undefined {
  const { sticky, rollout } = call.route;
  const key = sticky && call.exchange.head.headers[sticky.header];
  call.bucket = key ? bucketOf(sticky.seed, key) : -1;
  call.lapsed = rollout !== undefined && lease.isOver(rollout.spec.leaseMs, performance.now());
  const target = pickTarget(call.route, call, call.pin);
  call.side = undefined;
  if (rollout && call.pin === undefined) {
    if (target === rollout.candidate) call.side = 'candidate';
    else if (target === rollout.stable) call.side = 'stable';
  }
  return target;
}
