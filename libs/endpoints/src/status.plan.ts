import type { DeploymentState, EndpointSpec, EndpointStatus } from '@perch/contracts';
import { splitSource } from './external-endpoint.plan.ts';

export interface DeploymentSight {
  version: number;
  state: DeploymentState;
  reason: string | null;
  wanted: boolean;
}

export interface StatusFacts {
  spec: EndpointSpec;
  generation: number;
  /** Versions that answer requests, newest first. */
  serving: readonly number[];
  /** Versions that the rule wants, newest first. */
  wanted: readonly number[];
  deployments: readonly DeploymentSight[];
  /** Why a wanted deployment has fewer servers than it wants. */
  short: string | undefined;
  /** False: the registry has no such model. */
  modelExists: boolean;
}

type Verdict = Pick<EndpointStatus, 'phase' | 'reason' | 'message'>;

/** What an endpoint shows. */
export function decideStatus(facts: StatusFacts): EndpointStatus {
  const { serving, generation, deployments, wanted } = facts;
  const servingVersions = [...serving];
  const coming = deployments.filter(({ wanted: is, state }) => is && state !== 'ready').map(({ version }) => version);
  const newest = wanted[0];
  const nextVersion =
    coming.length > 0 ? Math.max(...coming) : newest !== undefined && !servingVersions.includes(newest) ? newest : null;
  return { ...verdict(facts, servingVersions), generationSeen: generation, servingVersions, nextVersion };
}

function verdict({ spec, wanted, deployments, short, modelExists }: StatusFacts, serving: readonly number[]): Verdict {
  const model = `${spec.model.project}/${spec.model.name}`;
  const now = serving.length > 0 ? `version ${serving.join(', ')} serves` : 'nothing serves';
  if (spec.stopped) return { phase: 'blocked', reason: 'stopped', message: `it was stopped by hand; ${now}` };
  if (wanted.length === 0 && spec.model.source) return sourceless(spec.model.source, spec, now);
  if (wanted.length === 0)
    return {
      phase: 'blocked',
      reason: modelExists ? 'no_version' : 'no_model',
      message: modelExists
        ? `no version of model ${model} matches ${rule(spec)}; ${now}`
        : `model ${model} does not exist yet; upload a version of it`,
    };
  const failed = deployments.find(({ wanted: is, state }) => is && state === 'failed');
  if (failed)
    return {
      phase: 'blocked',
      reason: 'deployment_failed',
      message: `version ${failed.version} failed: ${failed.reason ?? 'no reason was given'}; ${now}`,
    };
  const coming = deployments.find(({ wanted: is, state }) => is && state !== 'ready');
  if (coming?.state === 'placing')
    return {
      phase: 'blocked',
      reason: 'no_server',
      message: `version ${coming.version} waits: ${coming.reason ?? short}; ${now}`,
    };
  if (coming)
    return {
      phase: 'progressing',
      reason: 'loading',
      message: `version ${coming.version} is loading${coming.reason ? ` (${coming.reason})` : ''}; ${now}`,
    };
  if (short) return { phase: 'progressing', reason: 'too_few_servers', message: `${now}; ${short}` };
  return { phase: 'ready', reason: 'serving', message: now };
}

function sourceless(source: string, { model }: EndpointSpec, now: string): Verdict {
  const { scope, model: name } = splitSource(source);
  const numbers = model.version === undefined ? model.select?.versions : [model.version];
  const what = numbers ? `version ${numbers.join(' or ')} of ${name}` : `a version of ${name}`;
  return {
    phase: 'blocked',
    reason: 'no_model',
    message: `no external server ${scope}, or of a pool of that name, has ${what} ready; ${now}`,
  };
}

function rule({ model }: EndpointSpec): string {
  if (model.version !== undefined) return `(version ${model.version} is fixed)`;
  const { tags = [], tagMatch = 'all', published = true } = model.select ?? {};
  const states = published ? 'published' : 'draft or published';
  return tags.length === 0 ? `(${states})` : `(${states}, tags ${tagMatch} of ${tags.join(', ')})`;
}

export const initialStatus = (generation: number): EndpointStatus => ({
  phase: 'progressing',
  reason: 'new',
  message: 'not looked at yet',
  generationSeen: generation,
  servingVersions: [],
  nextVersion: null,
});
