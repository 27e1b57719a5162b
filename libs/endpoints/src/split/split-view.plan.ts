import type { DeploymentState, Split, SplitSpec } from '@perch/contracts';
import type { SplitRow } from './split.store.ts';
import { type CompiledSplit, compileSplit, type MemberRoutes } from './split-route.plan.ts';

/** How a deployment of an endpoint stands. */
export interface SplitStanding {
  endpoint: string;
  version: number;
  state: DeploymentState;
  reason: string | null;
}

type Wish = CompiledSplit['wishes'][number];

const percent = (share: number) => Math.round(share * 10_000) / 100;

/** Why nothing serves what a split names. */
function missingText({ target, place }: Wish, members: MemberRoutes, standings: readonly SplitStanding[]): string {
  if (target === '') return 'no version is left for this weight';
  if (!place) return 'there is no such endpoint';
  const { endpoint, version } = place;
  if (members.get(endpoint)?.stopped) return `endpoint ${endpoint} is stopped`;
  if (version === null) return `endpoint ${endpoint} serves nothing now`;
  const found = standings.find((one) => one.endpoint === endpoint && one.version === version);
  if (!found) return `version ${version} is not deployed`;
  if (found.state === 'ready') return `version ${version} is on its way into the routing table`;
  const verb = found.state === 'failed' ? '' : 'is ';
  return `version ${version} ${verb}${found.state}${found.reason ? `: ${found.reason}` : ''}`;
}

function armsOf(wishes: readonly Wish[], members: MemberRoutes, standings: readonly SplitStanding[]): Split['arms'] {
  return wishes.flatMap((wish): Split['arms'] => {
    const { target, place, parts, share } = wish;
    if (parts.length === 0) {
      const missing = missingText(wish, members, standings);
      const names = { target, endpoint: place?.endpoint ?? target, version: place?.version ?? null };
      return [{ ...names, weightPercent: 0, missing }];
    }
    return parts.map((part) => ({
      target,
      endpoint: place!.endpoint,
      version: part.target.version,
      weightPercent: percent(share * part.share),
      missing: null,
    }));
  });
}

/** Where the traffic goes and why, in sentences. */
export function splitMessage(
  { name, targetPrefix, newestFirst }: SplitSpec,
  wishes: readonly Wish[],
  own: boolean,
  members: MemberRoutes,
): string {
  const serving = wishes.filter(({ parts }) => parts.length > 0);
  const total = wishes.reduce((sum, { weight }) => sum + weight, 0);
  const heaviest = serving.reduce<Wish | undefined>((most, wish) => (wish.share > (most?.share ?? 0) ? wish : most), undefined); // biome-ignore format: one row reads better
  if (!heaviest) {
    const below = [...members.keys()].length > 0 ? 'no version of them serves' : 'no endpoint lies there yet';
    return targetPrefix
      ? `nothing is served below ${targetPrefix}/: ${below}`
      : 'nothing is served: no target can serve';
  }
  const shares = serving.map(({ target, share }) => `${percent(share)} % to ${target}`).join(', ');
  const sentences = [own ? `sets the weights of endpoint ${name}: ${shares}` : shares];
  for (const { target, weight, parts } of wishes)
    if (parts.length === 0 && weight > 0 && target !== '')
      sentences.push(`${target} is missing, so its ${percent(weight / total)} % go to ${heaviest.target}`);
  const unfilled = wishes.filter(({ target }) => target === '').length;
  if (unfilled > 0)
    sentences.push(
      `${newestFirst!.length} weights and ${newestFirst!.length - unfilled} versions below ${targetPrefix}/: what is left over goes to ${heaviest.target}`,
    );
  const trials = new Set(
    serving.flatMap(({ place }) => (members.get(place!.endpoint)?.rollout ? [place!.endpoint] : [])),
  );
  for (const endpoint of trials)
    sentences.push(`endpoint ${endpoint} has a candidate on trial, which gets nothing from here`);
  return sentences.join('; ');
}

/** What people see of a split. `members`: routes as the endpoints want them; `own`: it has the name of an endpoint. */
export function viewSplit(
  row: SplitRow & { spec: SplitSpec },
  members: MemberRoutes,
  standings: readonly SplitStanding[],
  own: boolean,
): Split {
  const { wishes } = compileSplit(row.spec, members);
  return {
    name: row.name,
    generation: row.generation,
    spec: row.spec,
    arms: armsOf(wishes, members, standings),
    message: splitMessage(row.spec, wishes, own, members),
    updatedAt: row.updated_at.toISOString(),
    updatedBy: row.updated_by,
  };
}

/** What follows from a change, in sentences for a person. */
export function splitEffect(
  before: SplitSpec | null,
  after: SplitSpec,
  facts: {
    members: MemberRoutes;
    own: boolean;
    keyed: readonly string[];
    named: { before: string[]; after: string[] };
  },
): string[] {
  const { members, own, keyed, named } = facts;
  const effect = named.after
    .filter((one) => !named.before.includes(one))
    .map((one) => `${one} is loaded and stays loaded, whatever the rule of its endpoint says`);
  for (const one of named.before.filter((version) => !named.after.includes(version)))
    effect.push(`${one} stays loaded only as long as the rule of its endpoint, or another split, wants it`);
  if (after.access.inference === 'public' && before?.access.inference !== 'public' && keyed.length > 0)
    effect.push(`anybody may call it without a key, also what wants one under its own name: ${keyed.join(', ')}`);
  const { wishes } = compileSplit(after, members);
  effect.push(splitMessage(after, wishes, own, members));
  return effect;
}
