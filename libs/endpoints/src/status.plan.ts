import type { DeploymentState, EndpointSpec, EndpointStatus } from '@perch/contracts';
import { splitSource } from './external-endpoint.plan.ts';

export interface DeploymentSight {
  version: number;
  digest?: string;
  /** Of the traffic, 0 to 1. */
  share?: number;
  state: DeploymentState;
  reason: string | null;
  wanted: boolean;
  /** `name@3`, of a module alone. */
  module?: string;
}

export interface StatusFacts {
  spec: EndpointSpec;
  generation: number;
  /** Versions that answer requests, newest first. */
  serving: readonly number[];
  /** Versions that the rule wants, newest first. */
  wanted: readonly number[];
  /** What the rule would want too, had a rollout not refused it. */
  refusals?: readonly { version: number; digest: string; reason: string }[];
  deployments: readonly DeploymentSight[];
  /** Why a wanted deployment has fewer servers than it wants. */
  short: string | undefined;
  /** False: the registry has no such model. */
  modelExists: boolean;
}

export type Verdict = Pick<EndpointStatus, 'phase' | 'reason' | 'message'> & { nextVersion?: number };

/** What an endpoint shows. `own`: of a progressive endpoint, what its trial comes to; see `trafficVerdict`. */
export function decideStatus(facts: StatusFacts, own?: Verdict): EndpointStatus {
  const { serving, generation, deployments, wanted } = facts;
  const servingVersions = [...serving];
  const coming = deployments.filter(({ wanted: is, state }) => is && state !== 'ready').map(({ version }) => version);
  const newest = wanted[0];
  const nextVersion =
    coming.length > 0 ? Math.max(...coming) : newest !== undefined && !servingVersions.includes(newest) ? newest : null;
  return { nextVersion, ...(own ?? verdict(facts)), generationSeen: generation, servingVersions };
}

/** Words that end most sentences. */
export const servesWords = (serving: readonly number[]): string =>
  serving.length > 0 ? `version ${serving.join(', ')} serves` : 'nothing serves';

/** Why a version that the rule has is not deployed, and who can change that. */
export function refusedWords(
  { spec, serving }: Pick<StatusFacts, 'spec' | 'serving'>,
  { version, digest, reason }: { version: number; digest: string; reason: string },
): string {
  const settings = serving.includes(version) ? ' with other settings' : '';
  const verb = `"perch endpoint quarantine ${spec.name} --release ${digest.slice(0, 12)}"`;
  return `version ${version}${settings} was refused: ${reason}; release it with ${verb}`;
}

function verdict(facts: StatusFacts): Verdict {
  const { spec, serving, wanted, refusals = [], deployments, short, modelExists } = facts;
  const model = `${spec.model.project}/${spec.model.name}`;
  const now = servesWords(serving);
  if (spec.stopped) return { phase: 'blocked', reason: 'stopped', message: `it was stopped by hand; ${now}` };
  const refused = refusals.find(({ version }) => version >= (wanted[0] ?? 0));
  const standing = refused && `${now}; ${refusedWords(facts, refused)}`;
  if (standing && wanted.length === 0) return { phase: 'blocked', reason: 'refused', message: standing };
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
  if (standing) return { phase: 'blocked', reason: 'refused', message: standing };
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
