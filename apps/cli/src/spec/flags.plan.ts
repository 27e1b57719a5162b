import { AppError, type EndpointSpecInput, sourceModelName } from '@perch/contracts';
import { parseDuration, parseSize } from '../duration.ts';
import { parsePairs, parseReference } from '../reference.ts';
import { enginePart } from './engine-flags.plan.ts';
import { type Flags, given, list, numbers, text, whole, yes } from './flag-value.plan.ts';
import { leavesProcessing, processingFlags } from './processing-flags.plan.ts';

type Spec = Partial<EndpointSpecInput>;
type Part<K extends keyof EndpointSpecInput> = NonNullable<EndpointSpecInput[K]>;

/**
 * The parts of a specification that flags name, over what `before` says about the same parts; undefined where no flag
 * speaks. `config` is the text of the pbtxt file, already read. The control plane validates the result.
 */
export function specFromFlags(flags: Flags, before: Spec = {}, config?: string): Spec {
  const spec: Spec = {
    model: modelPart(flags, before),
    engine: enginePart(flags, before.engine, config),
    processing: processingFlags(flags, before.processing),
    fleet: given({
      ...before.fleet,
      ...given({
        pool: text(flags, 'pool'),
        labels: labelsPart(flags, before),
        replicas: whole(flags, 'replicas', '--replicas'),
        minReplicas: whole(flags, 'minReplicas', '--min-replicas'),
      }),
    }),
    traffic: trafficPart(flags, before),
    limits: limitsPart(flags, before),
    access: flags['access'] === undefined ? before.access : { inference: text(flags, 'access') as 'key' },
    idempotent: yes(flags, 'idempotent', '--idempotent') ?? before.idempotent,
    description: text(flags, 'description') ?? before.description,
  };
  const { processing, ...kept } = before;
  return { ...kept, ...(processing && !leavesProcessing(flags) ? { processing } : {}), ...given(spec) };
}

/** `zone=a` joins what was asked for before; `zone=` takes it back. */
function labelsPart(flags: Flags, { fleet }: Spec): Part<'fleet'>['labels'] {
  const pairs = list(flags, 'label');
  if (pairs === undefined) return undefined;
  const all = { ...fleet?.labels, ...parsePairs(pairs, '--label') };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''));
}

const versionNumbers = (value: string | undefined): number[] | undefined =>
  value === undefined ? undefined : numbers(value, '--versions');

/** What an external Triton holds; the control plane names project and model after it. */
function sourcePart(
  flags: Flags,
  source: string,
  select: Part<'model'>['select'],
  maxVersions: number | undefined,
): Part<'model'> {
  if (flags['model'] !== undefined) throw new AppError('invalid', 'give --model or --source, not both');
  const known = sourceModelName(source);
  return { ...known, source, ...given({ select, maxVersions: maxVersions ?? select?.versions?.length }) };
}

function modelPart(flags: Flags, before: Spec): Part<'model'> | undefined {
  const rule = given({
    tags: list(flags, 'tag'),
    tagMatch: text(flags, 'tagMatch') as 'any' | undefined,
    published: flags['drafts'] === true ? false : undefined,
    versions: versionNumbers(text(flags, 'versions')),
  });
  const maxVersions = whole(flags, 'maxVersions', '--max-versions');
  const named = text(flags, 'model');
  const source = text(flags, 'source');
  if (source !== undefined) return sourcePart(flags, source, rule, maxVersions);
  if (named === undefined && !rule && maxVersions === undefined) return before.model;
  if (named === undefined && !before.model)
    throw new AppError('invalid', 'which model? Give --model project/name (or -f with a specification)');
  const { number, ...model } = named === undefined ? { ...before.model!, number: undefined } : parseReference(named);
  if (number === 'latest')
    throw new AppError('invalid', '--model: name a version number, or leave it out to follow the newest');
  if (number !== undefined && (rule || maxVersions !== undefined))
    throw new AppError(
      'invalid',
      `--model ${named} serves one version alone; --tag, --drafts and --max-versions want a model without one`,
    );
  if (number !== undefined) return { ...model, version: number };
  const { version: _version, ...rest } = named === undefined ? before.model! : { ...model, ...ruleOf(before, model) };
  return {
    ...rest,
    ...(rule ? { select: { ...rest.select, ...rule } } : {}),
    ...(maxVersions === undefined ? {} : { maxVersions }),
  };
}

/** The rule stays when only the model's name is said again. */
const ruleOf = (before: Spec, model: { project: string; name: string }) =>
  before.model?.project === model.project && before.model.name === model.name
    ? given({ select: before.model.select, maxVersions: before.model.maxVersions })
    : undefined;

const trafficFields = (traffic: Part<'traffic'>, policy: NonNullable<Part<'traffic'>>['policy']) =>
  given({ ...traffic, policy });

function trafficPart(flags: Flags, before: Spec): Part<'traffic'> | undefined {
  const pairs = list(flags, 'weight');
  const newest = text(flags, 'newestFirst');
  const weights = pairs
    ? Object.fromEntries(
        Object.entries(parsePairs(pairs, '--weight')).map(([key, value]) => [
          key,
          numbers(value, '--weight')[0] as number,
        ]),
      )
    : undefined;
  const newestFirst = newest === undefined ? undefined : numbers(newest, '--newest-first');
  const mode = (text(flags, 'traffic') ?? (weights || newestFirst ? 'weighted' : undefined)) as 'newest' | undefined;
  const header = text(flags, 'sticky');
  const sticky = header === undefined ? before.traffic?.sticky : header === 'none' ? undefined : { header };
  const said = text(flags, 'policy') as 'default' | undefined;
  if (mode === undefined) return trafficFields({ ...before.traffic, sticky }, said ?? before.traffic?.policy);
  const kept = mode === before.traffic?.mode ? before.traffic.policy : undefined;
  return trafficFields({ mode, weights, newestFirst, sticky }, said ?? kept);
}

function limitsPart(flags: Flags, before: Spec): Part<'limits'> | undefined {
  const timeout = text(flags, 'timeout');
  const body = text(flags, 'maxBody');
  return given({
    ...before.limits,
    ...given({
      timeoutMs: timeout === undefined ? undefined : parseDuration(timeout, '--timeout'),
      maxBodyBytes: body === undefined ? undefined : parseSize(body, '--max-body'),
    }),
  });
}
