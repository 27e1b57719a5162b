import { AppError, type Explanation } from '@perch/contracts';
import { explainText } from '../rollout/explain.plan.ts';
import { findRollout, rolloutPath } from '../rollout/rollout.source.ts';
import { viewOn } from '../rollout/view.ts';
import type { Run } from '../verb.ts';

/** Exit code 1 when the recomputation does not agree. */
export const run: Run = async (invocation, [name], options) => {
  const { event } = options;
  if (event !== undefined && !/^[1-9]\d{0,14}$/.test(event))
    throw new AppError('invalid', `--event: wants the number of an event (rollout show -o json), got "${event}"`);
  const client = await invocation.admin();
  const { id } = await findRollout(client, name as string);
  const explained = await client.call<Explanation>(`${rolloutPath(id)}/explain`, { query: { event } });
  const look = viewOn(process.stdout, invocation.settings);
  const disagrees = explained.recomputed !== null && !explained.agrees;
  return { value: explained, text: () => explainText(explained, look), exitCode: disagrees ? 1 : 0 };
};
