import { Inject, Injectable } from '@nestjs/common';
import { type Actor, AppError, type EndpointSpec, type ProcessingModuleRecord } from '@perch/contracts';
import { Transactions } from '@perch/platform/database';
import { EndpointStore } from './endpoint.store.ts';
import { ProcessingSource } from './resolve/processing.source.ts';
import { CONFIG_TEXTS, type ConfigTexts } from './resolve/version.source.ts';
import { WantedObserve } from './resolve/wanted.observe.ts';
import { parseSpec } from './spec.plan.ts';

/** From what somebody sent to the spec that is written: checked, its module by number, where it may run decided. */
@Injectable()
export class SpecAcceptService {
  constructor(
    private readonly transactions: Transactions,
    private readonly endpoints: EndpointStore,
    private readonly wanted: WantedObserve,
    private readonly processing: ProcessingSource,
    @Inject(CONFIG_TEXTS) private readonly configs: ConfigTexts,
  ) {}

  /**
   * A spec that nothing known speaks against: what its graph or the model server's own rules refuse would fail everywhere.
   * Throws `invalid` or `not_available_yet` naming the field (see `parseSpec`), `not_found` for a module that is not
   * there, `forbidden` for an isolation that is not the actor's to choose.
   */
  async accept(actor: Actor, input: unknown): Promise<EndpointSpec> {
    const spec = await this.settle(actor, this.parse(input));
    const seen = await this.wanted.preview(spec);
    if (!seen) return spec;
    const refuse = (words: string) =>
      new AppError('invalid', `endpoint ${spec.name}: version ${seen.version}: ${words}`);
    if (seen.fault !== null) throw refuse(seen.fault);
    for (const engine of seen.engines) {
      try {
        this.configs.render(spec.model.name, engine);
      } catch (error) {
        throw error instanceof AppError && error.code === 'invalid' ? refuse(error.message) : error;
      }
    }
    return spec;
  }

  /** The spec of an older generation. Its module stays the one it names; whether the actor may choose it is asked again. */
  again(actor: Actor, spec: EndpointSpec): Promise<EndpointSpec> {
    return this.settle(actor, this.parse(spec));
  }

  /** The spec with its defaults. Throws `invalid` or `not_available_yet` naming the field; see `parseSpec`. */
  private parse(input: unknown): EndpointSpec {
    const spec = parseSpec(input);
    const { config } = spec.engine;
    if (config === undefined) return spec;
    const thing = `endpoint ${spec.name}: engine.config`;
    if (this.configs.read(config, thing).hasVersionPolicy)
      throw new AppError(
        'invalid',
        `${thing}: version_policy: say how many versions are served with model.maxVersions`,
      );
    return spec;
  }

  private async settle(actor: Actor, spec: EndpointSpec): Promise<EndpointSpec> {
    if (spec.processing === undefined) return spec;
    const before = (await this.endpoints.get(this.transactions.manager, spec.name))?.spec?.processing;
    const thing = `endpoint ${spec.name}`;
    const { processing, module } = await this.processing.settle(actor, thing, spec.processing, before);
    if (module) requireWork(spec, module);
    return { ...spec, processing };
  }
}

function requireWork({ name, engine }: EndpointSpec, module: ProcessingModuleRecord): void {
  if (engine.platform !== 'custom' || module.facts.hooks.includes('process')) return;
  throw new AppError(
    'invalid',
    `endpoint ${name}: engine.platform custom leaves all the work to a process hook, and module ${module.name}@${module.number} has none`,
  );
}
