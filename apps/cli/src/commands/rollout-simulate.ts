import { AppError, type RolloutSimulation } from '@perch/contracts';
import { policyOption } from '../rollout/policy.source.ts';
import { simulationText } from '../rollout/simulation.plan.ts';
import { viewOn } from '../rollout/view.ts';
import type { Run } from '../verb.ts';
import { endpointPath } from './ready.ts';

const timeoutMs = 5 * 60_000;

/** `0.1%`, `0.1 %` or `0.001`. */
function rateOption(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const [, number, percent] = /^(\d+(?:\.\d+)?)\s*(%)?$/.exec(text.trim()) ?? [];
  const rate = Number(number) / (percent ? 100 : 1);
  if (!(rate >= 0 && rate <= 1)) throw new AppError('invalid', `--error-rate: wants 0.1% or 0.001, got "${text}"`);
  return rate;
}

function numberOption(text: string | undefined, flag: string): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d+(\.\d+)?$/.test(text)) throw new AppError('invalid', `${flag}: wants a number, got "${text}"`);
  return Number(text);
}

export const run: Run = async (invocation, [name], options) => {
  const body = {
    policy: await policyOption(options['policy']),
    requestsPerMinute: numberOption(options['rpm'], '--rpm'),
    errorRate: rateOption(options['errorRate']),
    runs: numberOption(options['runs'], '--runs'),
    seed: numberOption(options['seed'], '--seed'),
  };
  const client = await invocation.admin();
  invocation.hint('Simulating ...');
  const path = `${endpointPath(name as string)}/rollout/simulate`;
  const simulation = await client.call<RolloutSimulation>(path, { method: 'POST', body, timeoutMs });
  return {
    value: simulation,
    text: () => simulationText(name as string, simulation, viewOn(process.stdout, invocation.settings)),
  };
};
