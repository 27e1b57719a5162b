import { isOver, type Rollout, type RolloutVerb } from '@perch/contracts';
import type { AdminClient } from '../admin.client.ts';
import { type Shown, said } from '../output.ts';
import { figureText } from '../rollout/number.plan.ts';
import { findRollout, rolloutPath } from '../rollout/rollout.source.ts';
import { standing } from '../rollout/words.plan.ts';
import type { Run } from '../verb.ts';
import { waitMs, waitUntil } from '../wait.ts';

/** What each verb comes to; `before` is the rollout as it was. */
const done: Record<RolloutVerb, (now: Rollout, before: Rollout) => boolean> = {
  pause: ({ run }) => run === 'held',
  resume: ({ run }) => run !== 'held',
  advance: (now, before) => now.epoch > before.epoch || now.state !== before.state,
  promote: ({ state }) => state === 'promoted',
  abort: ({ state }) => state === 'aborted',
  rollback: ({ state }) => state === 'rolled_back',
};

export const runCommand =
  (verb: RolloutVerb): Run =>
  async (invocation, [name], options) => {
    const client = await invocation.admin();
    const before = await findRollout(client, name as string);
    const body = { reason: options['reason'] ?? '' };
    const after = await client.call<Rollout>(`${rolloutPath(before.id)}/${verb}`, { method: 'POST', body });
    const limitMs = waitMs(options['wait']);
    if (limitMs === undefined) return saidOf(after);
    return saidOf(
      await waitFor(
        client,
        after,
        limitMs,
        `${verb} of ${after.endpoint}`,
        (now) => done[verb](now, before) || isOver(now.state),
      ),
    );
  };

/** Asks until `reached`; what it was then. */
export async function waitFor(
  client: AdminClient,
  { id }: Rollout,
  limitMs: number,
  thing: string,
  reached: (now: Rollout) => boolean,
): Promise<Rollout> {
  let latest: Rollout | undefined;
  await waitUntil(
    async () => {
      latest = await client.call<Rollout>(rolloutPath(id));
      return { done: reached(latest), standing: `${standing(latest)}: ${latest.reason}` };
    },
    limitMs,
    thing,
  );
  return latest as Rollout;
}

export const saidOf = (rollout: Rollout): Shown => {
  const { endpoint, stable, candidate, weightPercent, reason } = rollout;
  const versions = `version ${stable.version} to ${candidate.version}`;
  return said(
    rollout,
    `${endpoint}, ${versions}: ${standing(rollout)}, ${figureText(weightPercent)} % of requests. ${reason}`.trim(),
  );
};
