import { Inject, Injectable } from '@nestjs/common';
import {
  type Actor,
  AppError,
  type BoundProcessing,
  canonicalJson,
  type ProcessingModuleRecord,
  type ProcessingSpec,
  parseBuiltinOptions,
  splitModule,
} from '@perch/contracts';
import { LayoutFault } from './layout-fault.ts';
import { bindModule, boundBuiltin, decideIsolation, missingModule, type ProcessingPolicy } from './processing.plan.ts';

/** Where registered modules come from: the registry. */
export interface ModuleSource {
  /** Without a number the newest; null: there is none. */
  findModule(name: string, number?: number): Promise<ProcessingModuleRecord | null>;
  /** Newest first; none where the name was never used. */
  moduleNumbers(name: string): Promise<number[]>;
}
export const MODULES = Symbol('modules');
export const PROCESSING_POLICY = Symbol('processing policy');

/** Turns what specs say about processing into what is written, and into what deployments are bound to. */
@Injectable()
export class ProcessingSource {
  constructor(
    @Inject(MODULES) private readonly modules: ModuleSource,
    @Inject(PROCESSING_POLICY) private readonly policy: ProcessingPolicy,
  ) {}

  /**
   * What is written of `wanted`: the module by number, where it may run by the role of `actor`. `before`: what is in force
   * already, which anybody may leave as it is. Throws `not_found` for an unknown module (naming what there is),
   * `forbidden`, `invalid`. `thing` names whose it is.
   */
  async settle(
    actor: Actor,
    thing: string,
    wanted: ProcessingSpec,
    before?: ProcessingSpec,
  ): Promise<{ processing: ProcessingSpec; module: ProcessingModuleRecord | null }> {
    const module = wanted.module === undefined ? null : await this.record(thing, wanted.module);
    const pinned = module ? { ...wanted, module: `${module.name}@${module.number}` } : wanted;
    if (pinned.builtin !== undefined) parseBuiltinOptions(pinned.builtin, pinned.options);
    const same = before !== undefined && canonicalJson(before) === canonicalJson(pinned);
    return { processing: same ? pinned : decideIsolation(thing, pinned, actor, this.policy), module };
  }

  /** As a deployment holds it. Throws `LayoutFault` for a module that is not there (any more). */
  async bind(processing: ProcessingSpec): Promise<BoundProcessing> {
    const { module } = processing;
    if (module === undefined) return boundBuiltin(processing);
    const { name, number } = splitModule(module);
    const record = await this.modules.findModule(name, number);
    if (!record) throw new LayoutFault(missingModule(module, await this.modules.moduleNumbers(name)));
    return bindModule(processing, record);
  }

  private async record(thing: string, reference: string): Promise<ProcessingModuleRecord> {
    const { name, number } = splitModule(reference);
    const record = await this.modules.findModule(name, number);
    if (record) return record;
    const words = missingModule(reference, await this.modules.moduleNumbers(name));
    throw new AppError('not_found', `${thing}: processing.module: ${words}`);
  }
}
