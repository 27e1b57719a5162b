import type { ApplyResult } from '@perch/contracts';
import { type CanaryFlags, planCanary } from '../clearml/canary.plan.ts';
import { said } from '../output.ts';
import type { Run } from '../verb.ts';
import { waitMs } from '../wait.ts';
import { waitSplit } from './split-change.ts';
import { sharesText } from './split-show.ts';

/** ClearML's `canary` also changes one that is there: that is what apply does. */
export const canary: Run = async (invocation, _args, options) => {
  const spec = planCanary(options as CanaryFlags, invocation);
  const client = await invocation.admin();
  const result = await client.call<ApplyResult>('/apply', { method: 'POST', body: spec });
  const limitMs = waitMs(options['wait']);
  if (limitMs !== undefined) await waitSplit(client, spec.name, limitMs);
  invocation.hint(`Next: perch split show ${spec.name}`);
  const { name, outcome, generation } = result;
  return said(
    result,
    `Canary endpoint /${name}/ shares out ${sharesText(spec)} (${outcome}, generation ${generation}).`,
  );
};
