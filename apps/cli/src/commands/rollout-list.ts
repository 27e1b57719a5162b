import { isOver, type Rollout } from '@perch/contracts';
import { formatAge } from '../duration.ts';
import { shownList } from '../output.ts';
import { figureText } from '../rollout/number.plan.ts';
import { standing } from '../rollout/words.plan.ts';
import type { Run } from '../verb.ts';

export const run: Run = async (invocation, _args, options) => {
  const client = await invocation.admin();
  const query = { endpoint: options['endpoint'], active: options['all'] ? undefined : true };
  const now = Date.now();
  return shownList(
    await client.list<Rollout>('/rollouts', query),
    [
      ['endpoint', ({ endpoint }) => endpoint],
      ['version', ({ stable, candidate }) => `${stable.version} -> ${candidate.version}`],
      ['state', (rollout) => standing(rollout)],
      ['traffic', ({ weightPercent }) => `${figureText(weightPercent)} %`],
      ['started', ({ startedAt }) => formatAge(startedAt, now)],
      ['ended', ({ state, endedAt }) => (isOver(state) ? formatAge(endedAt, now) : undefined)],
      ['id', ({ id }) => id],
      ['why', ({ reason }) => reason],
    ],
    options['all'] ? 'No rollouts yet.' : 'No rollout goes on; perch rollout list --all shows those that are over.',
  );
};
