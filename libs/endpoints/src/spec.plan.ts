import {
  AppError,
  type EndpointSpec,
  endpointSpec,
  parseBuiltinOptions,
  parseWith,
  sourceModelName,
  splitModule,
} from '@perch/contracts';
import { engineContradictions } from './resolve/engine-settings.plan.ts';

/** One part of a spec that is understood and not built yet. */
export interface UnavailablePart {
  path: string;
  message: string;
}

type Rule = [path: string, when: (spec: EndpointSpec) => boolean, message: string];

const rules: readonly Rule[] = [
  ['traffic.mode', (s) => s.traffic.mode === 'progressive' && s.model.source !== undefined, 'progressive rollouts of what an external Triton holds are not available yet; use newest or weighted'],
  ['limits.concurrency', (s) => s.limits.concurrency !== undefined, 'limits of concurrency are not available yet'],
  ['limits.rateLimitPerKey', (s) => s.limits.rateLimitPerKey !== undefined, 'rate limits per key are not available yet'],
]; // biome-ignore format: a table

/** Parts of the spec that later releases make work. `slo` is no such part: it is kept as information. */
export const unavailableParts = (spec: EndpointSpec): UnavailablePart[] =>
  rules.filter(([, when]) => when(spec)).map(([path, , message]) => ({ path, message }));

/** Stands for the project of endpoints that have no model. */
const moduleProject = 'modules';

/** What a spec may not say although each field by itself is fine. */
function contradictions({ engine, traffic, model, processing, idempotent }: EndpointSpec): UnavailablePart[] {
  const faults: UnavailablePart[] = [];
  const add = (path: string, message: string) => faults.push({ path, message });
  if (model.source !== undefined && Object.keys(engine).length > 0)
    add('engine', 'has no meaning with model.source: the external Triton knows how it runs its models');
  if (model.source !== undefined && (model.select?.tags.length || model.select?.published === false))
    add('model.select', 'versions of an external Triton have numbers alone: give select.versions or maxVersions');
  if (engine.dynamicBatching && !engine.config && !(engine.maxBatchSize && engine.maxBatchSize > 0))
    add('engine.dynamicBatching', 'wants engine.maxBatchSize above 0');
  const tooLarge = engine.dynamicBatching?.preferredSizes?.find((size) => size > (engine.maxBatchSize ?? 0));
  if (tooLarge !== undefined && engine.maxBatchSize)
    add('engine.dynamicBatching.preferredSizes', `${tooLarge} is above engine.maxBatchSize ${engine.maxBatchSize}`);
  faults.push(...engineContradictions(engine));
  if (model.none && (engine.platform !== 'custom' || processing?.module === undefined))
    add('model.none', 'wants engine.platform custom and a processing.module that does the work');
  if (engine.platform === 'custom' && processing?.builtin !== undefined)
    add('processing.builtin', 'engine.platform custom has no model: give processing.module, one with a process hook');
  if (engine.defaultModelFilename && /[/\\]|^\.\.?$/.test(engine.defaultModelFilename))
    add('engine.defaultModelFilename', 'wants a file name without folders');
  const policy = typeof traffic.policy === 'object' ? traffic.policy : undefined;
  if (policy?.shadow && !idempotent)
    add('traffic.policy.shadow', 'sends requests a second time, which idempotent: false forbids');
  if (traffic.newestFirst && model.version !== undefined && traffic.newestFirst.length > 1)
    add('traffic.newestFirst', 'one fixed model.version has no second newest; give model.maxVersions instead');
  return faults;
}

const words = (parts: readonly UnavailablePart[]) => parts.map(({ path, message }) => `${path}: ${message}`).join('; ');

const kindOf = (input: unknown) => (input as { kind?: unknown } | null)?.kind;

/** Throws `invalid` where an endpoint is wanted and a split or a pipeline is given: they have places of their own. */
export function refuseKind(input: unknown): void {
  const kind = kindOf(input);
  if (kind !== 'Split' && kind !== 'Pipeline') return;
  const noun = kind.toLowerCase();
  throw new AppError(
    'invalid',
    `kind ${kind} is no endpoint: send it to /api/v1/${noun}s ("perch ${noun} add"), or apply it`,
    {
      details: { errors: [{ path: 'kind', message: `wants Endpoint, got ${kind}` }] },
    },
  );
}

interface Nameless {
  model?: { source?: unknown; none?: unknown };
  engine?: { platform?: unknown };
  processing?: { module?: unknown };
}

/** An endpoint that is served by an external Triton, or by a module alone, need not name a model of the registry. */
export function nameSource(input: unknown): unknown {
  const { model, engine, processing } = (input ?? {}) as Nameless;
  if (typeof model?.source === 'string')
    return { ...(input as object), model: { ...sourceModelName(model.source), ...model } };
  const isNone = model?.none === true || (model === undefined && engine?.platform === 'custom');
  if (!isNone || typeof processing?.module !== 'string') return input;
  const name = splitModule(processing.module).name.replaceAll('/', '-').slice(0, 64);
  return { ...(input as object), model: { project: moduleProject, name, ...model, none: true } };
}

/**
 * A spec as the user wrote it, with every default filled in. Throws `invalid` naming the field at fault, and
 * `not_available_yet` naming every field that asks for what is not built: nothing is ignored silently.
 */
export function parseSpec(input: unknown): EndpointSpec {
  refuseKind(input);
  const spec = parseWith(endpointSpec, nameSource(input), 'endpoint spec');
  const contradicting = contradictions(spec);
  if (contradicting.length > 0)
    throw new AppError('invalid', `endpoint ${spec.name}: ${words(contradicting)}`, {
      details: { errors: contradicting },
    });
  const missing = unavailableParts(spec);
  if (missing.length > 0)
    throw new AppError('not_available_yet', `endpoint ${spec.name}: ${words(missing)}`, {
      details: { errors: missing },
    });
  // Checked here, kept as written: a default that changes with a release must not look like a change of the user's.
  if (spec.processing?.builtin) parseBuiltinOptions(spec.processing.builtin, spec.processing.options);
  return spec;
}
