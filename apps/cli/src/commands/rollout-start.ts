import { AppError, isOver, type Rollout } from '@perch/contracts';
import { shownFacts } from '../output.ts';
import { policyOption } from '../rollout/policy.source.ts';
import type { Run } from '../verb.ts';
import { waitMs } from '../wait.ts';
import { endpointPath } from './ready.ts';
import { saidOf, waitFor } from './rollout-command.ts';

/** `--wait` ends with the rollout: 0 when it was promoted, 1 when not, 7 when time ran out. */
export const run: Run = async (invocation, [name], options) => {
  const { version, reason = '', allowBreaking = false } = options;
  if (version !== undefined && !/^[1-9]\d{0,9}$/.test(version))
    throw new AppError('invalid', `--version: wants a version number, got "${version}"`);
  const client = await invocation.admin();
  const policy = await policyOption(options['policy']);
  const body = { version: version && Number(version), policy, allowBreaking, reason };
  const path = `${endpointPath(name as string)}/rollout`;
  const started = await client.call<Rollout>(path, {
    method: 'POST',
    body,
    query: options['dryRun'] ? { dryRun: true } : {},
  });
  if (options['dryRun'])
    return shownFacts(started, [
      ['endpoint', started.endpoint],
      ['would start', `version ${started.stable.version} to ${started.candidate.version}`],
      ['ramp', `${started.policy.ramp}: ${started.policy.weightsPercent.join(', ')} %`],
      ['first', started.policy.shadow ? 'shadow' : 'verify'],
      ['message', started.reason],
    ]);
  const limitMs = waitMs(options['wait']);
  if (limitMs === undefined) {
    invocation.hint(`Next: perch rollout watch ${name}`);
    return saidOf(started);
  }
  const ended = await waitFor(client, started, limitMs, `rollout of ${name} over`, ({ state }) => isOver(state));
  return { ...saidOf(ended), exitCode: ended.state === 'promoted' ? 0 : 1 };
};
