import type { Shown } from '../output.ts';
import { findRollout, readEvents } from '../rollout/rollout.source.ts';
import { renderRollout } from '../rollout/view.plan.ts';
import { viewOn } from '../rollout/view.ts';
import type { Run } from '../verb.ts';

export const run: Run = async (invocation, [name]): Promise<Shown> => {
  const client = await invocation.admin();
  const rollout = await findRollout(client, name as string);
  const events = await readEvents(client, rollout.id);
  const text = () =>
    [
      ...renderRollout({ rollout, events, now: Date.now(), ...viewOn(process.stdout, invocation.settings) }),
      '',
      `id ${rollout.id}, started by ${rollout.startedBy}`,
    ].join('\n');
  return { value: { ...rollout, events }, text };
};
