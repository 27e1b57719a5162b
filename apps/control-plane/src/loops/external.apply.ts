import { createHash } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { AppError, type DesiredModel } from '@perch/contracts';
import { type ExternalPlan, type ExternalRow, ExternalSource } from '@perch/fleet';
import { LOGGER, type Logger } from '@perch/platform';
import { RegistryService } from '@perch/registry';
import { parseModelConfig, renderModelConfig, TritonFault } from '@perch/triton/control';
import { ExternalTritons } from './external-triton.client.ts';

const fetchTimeoutMs = 60_000;
/** Its own words why this model cannot run: not tried again, unlike what the way there did. */
const lasting = new Set(['load', 'input', 'model', 'unsupported']);

/** Loads and unloads models of ours in Tritons without an agent. What it remembers only spares doing a thing twice. */
@Injectable()
export class ExternalApply {
  private readonly running = new Map<string, Set<string>>();
  private readonly failed = new Map<string, Map<string, string>>();

  constructor(
    private readonly tritons: ExternalTritons,
    private readonly source: ExternalSource,
    private readonly registry: RegistryService,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  loading(id: string): ReadonlySet<string> {
    return this.running.get(id) ?? new Set();
  }

  /** Why loads ended; what is no longer wanted is forgotten. */
  failures(id: string, desired: ReadonlySet<string>): ReadonlyMap<string, string> {
    const failed = this.failed.get(id) ?? new Map<string, string>();
    for (const name of failed.keys()) if (!desired.has(name)) failed.delete(name);
    return failed;
  }

  /** Loads go on by themselves: a slow one must not make its server look silent. */
  async act(server: ExternalRow, { load, unload }: ExternalPlan): Promise<void> {
    for (const name of load) void this.load(server, name);
    for (const name of unload) {
      this.logger.info('unloading from an external Triton', { server: server.name, tritonModel: name });
      await this.tritons.of(server).unload(name);
    }
  }

  forget(id: string): void {
    this.failed.delete(id);
    this.tritons.forget(id);
  }

  private async load(server: ExternalRow, name: string): Promise<void> {
    const running = this.running.get(server.id) ?? new Set();
    if (running.has(name)) return;
    this.running.set(server.id, running.add(name));
    try {
      const model = await this.source.body(name);
      if (!model) return;
      this.logger.info('loading into an external Triton', { server: server.name, tritonModel: name });
      const config = parseModelConfig(renderModelConfig(name, model.engine, { gpus: 1 }));
      const inline = { config, files: await this.filesOf(model) };
      await this.tritons.of(server).load(name, { inline });
    } catch (error) {
      this.logger.warn('not loaded into an external Triton', { server: server.name, tritonModel: name, error });
      if (!(error instanceof TritonFault) || !lasting.has(error.kind)) return;
      const failed = this.failed.get(server.id) ?? new Map<string, string>();
      this.failed.set(server.id, failed.set(name, error.text));
    } finally {
      running.delete(name);
    }
  }

  /** Bytes from the store, hashed after their last copy. */
  private async filesOf({ files }: DesiredModel): Promise<Map<string, Uint8Array>> {
    const urls = await this.registry.blobUrls([...new Set(files.map(({ sha256 }) => sha256))]);
    const byHash = new Map(urls.map(({ sha256, url }) => [sha256, url]));
    const bytes = new Map<string, Uint8Array>();
    for (const { path, sha256, size } of files) {
      const url = byHash.get(sha256);
      if (!url) throw new AppError('unavailable', `${path} is not in the store now`);
      const reply = await fetch(url, { signal: AbortSignal.timeout(fetchTimeoutMs) });
      if (!reply.ok) throw new AppError('unavailable', `${path} cannot be read now (status ${reply.status})`);
      const content = Buffer.from(await reply.arrayBuffer());
      if (content.length !== size || createHash('sha256').update(content).digest('hex') !== sha256)
        throw new AppError('integrity', `${path}: the store gave other bytes than were uploaded`);
      bytes.set(path, content);
    }
    return bytes;
  }
}
