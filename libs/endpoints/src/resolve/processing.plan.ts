import {
  AppError,
  type BoundProcessing,
  type Isolation,
  type ProcessingModuleRecord,
  type ProcessingSpec,
  type Role,
  roles,
  splitModule,
} from '@perch/contracts';
import { LayoutFault } from './layout-fault.ts';

/** What publishers' modules run in at least; inline is for admins alone whatever this says. */
export interface ProcessingPolicy {
  publisherIsolation: Exclude<Isolation, 'inline'>;
}

const passthrough: ProcessingSpec = { builtin: 'passthrough' };

/** What an endpoint says comes first, then what the version carries. */
export const processingOf = (
  { processing }: { processing?: ProcessingSpec | undefined },
  version: { processing?: ProcessingSpec | undefined },
): ProcessingSpec => processing ?? version.processing ?? passthrough;

/** A built-in as deployments hold it. Absent: `passthrough`. */
export const boundBuiltin = ({ builtin = 'passthrough', options = {} }: ProcessingSpec = passthrough) => ({
  builtin,
  options,
});

/** All of it that a deployment is made from, without looking at the module: a number once given names the same bytes. */
export const processingSource = (processing: ProcessingSpec): object =>
  processing.module === undefined
    ? boundBuiltin(processing)
    : { module: processing.module, options: processing.options ?? {}, isolation: isolationOf(processing) };

/** What makes two deployments of one model different: not the module's name and number, but what it is and where it runs. */
export const processingIdentity = ({ builtin, module, isolation, options }: BoundProcessing): object =>
  module ? { module: module.digest, options, isolation } : { builtin, options };

const isolationOf = ({ isolation = 'worker' }: ProcessingSpec): Isolation => isolation;

/** With the module's record, found under its reference. */
export function bindModule(processing: ProcessingSpec, record: ProcessingModuleRecord): BoundProcessing {
  const { name, number, digest, facts, files } = record;
  return {
    module: { name, number, digest, facts, files },
    isolation: isolationOf(processing),
    options: processing.options ?? {},
  };
}

/** For people: `module ner/rules@3, isolation worker`, or the name of the built-in. */
export const processingWords = ({ builtin, module, isolation = 'worker' }: BoundProcessing): string =>
  module ? `module ${module.name}@${module.number}, isolation ${isolation}` : `built-in ${builtin}`;

const shown = 8;

/** Why a reference leads nowhere. `numbers`: those of its name, newest first. */
export function missingModule(reference: string, numbers: readonly number[]): string {
  const { name } = splitModule(reference);
  if (numbers.length === 0)
    return `there is no processing module ${name}; "perch processing list" shows those that there are`;
  const more = numbers.length > shown ? ', …' : '';
  return `there is no processing module ${reference}; of ${name} there are ${numbers.slice(0, shown).join(', ')}${more}`;
}

/** Throws `LayoutFault` where a deployment without a model has nobody to do its work. */
export function requireProcess({ builtin, module }: BoundProcessing): void {
  if (module?.facts.hooks.includes('process')) return;
  const got = module ? `module ${module.name}@${module.number} has none` : `built-in ${builtin} has none`;
  throw new LayoutFault(
    `it has no model, so its processing wants a module with a process hook that does the work; ${got}`,
  );
}

/**
 * Where a module may run is a question of who says so: `inline` shares the router's memory with all endpoints, so only
 * admins choose it; publishers may be held to `process`. Answers what is to be written. Throws `forbidden`, or `invalid`
 * for a built-in that is to run anywhere else than inline.
 */
export function decideIsolation(
  thing: string,
  processing: ProcessingSpec,
  { name, role }: { name: string; role: Role },
  { publisherIsolation }: ProcessingPolicy,
): ProcessingSpec {
  const { isolation, module } = processing;
  if (module === undefined) {
    if ((isolation ?? 'inline') === 'inline') return processing;
    throw new AppError(
      'invalid',
      `${thing}: processing.isolation: a built-in runs inline; ${isolation} is for modules`,
    );
  }
  const refuse = (words: string) => new AppError('forbidden', `${thing}: processing.isolation ${words}`);
  if (isolation === 'inline' && role !== 'admin')
    throw refuse(
      `inline runs module ${module} inside the router, among all endpoints: only an admin may choose it, and key ${name} is ${withArticle(role)}; use worker or process`,
    );
  if (roles.indexOf(role) > roles.indexOf('publisher') || publisherIsolation === 'worker') return processing;
  if (isolation === 'worker')
    throw refuse(
      `worker: modules of publishers run in a process of their own here (PERCH_PUBLISHER_ISOLATION), and key ${name} is ${withArticle(role)}; use process`,
    );
  return { ...processing, isolation: 'process' };
}

const withArticle = (role: Role) => (/^[aeio]/.test(role) ? `an ${role}` : `a ${role}`);
