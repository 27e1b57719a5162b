import { Inject, Injectable } from '@nestjs/common';
import { AppError, type BlobUrls, type Enrolled } from '@perch/contracts';
import { LOGGER, type Logger } from '@perch/platform';
import type { BlobSource } from '@perch/sync';
import { type AgentConfig, CONFIG } from './agent.config.ts';
import { ControlPlaneClient } from './control-plane.client.ts';
import { IdentityStore } from './identity.store.ts';

/** The agent's standing with the control plane: enrols when it has no identity, or when its token is no longer known. */
@Injectable()
export class SessionService implements BlobSource {
  private identity: Promise<Enrolled> | undefined;
  /** Whose documents were followed last; told when enrolling, so that a restored database is noticed. */
  lineage: string | null = null;

  constructor(
    @Inject(CONFIG) private readonly config: AgentConfig,
    @Inject(LOGGER) private readonly logger: Logger,
    private readonly client: ControlPlaneClient,
    private readonly store: IdentityStore,
  ) {}

  /** Where requests reach the server: told with each report as well, since it may come back at another port. */
  get address(): { http: string; grpc: string } {
    const { config } = this;
    return {
      http: config.PERCH_ADVERTISE_HTTP ?? config.PERCH_TRITON_HTTP,
      grpc: config.PERCH_ADVERTISE_GRPC ?? config.PERCH_TRITON_GRPC,
    };
  }

  /** Does `call` as this server; on `unauthenticated` once more under a new identity. */
  async as<T>(call: (who: Enrolled) => Promise<T>): Promise<T> {
    const first = this.current();
    try {
      return await call(await first);
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'unauthenticated') throw error;
      if (this.identity === first) this.identity = undefined;
      return call(await this.current('refused'));
    }
  }

  async urls(hashes: readonly string[]): Promise<BlobUrls['urls']> {
    return this.as(({ token }) => this.client.blobUrls(token, hashes, this.config.PERCH_PEERS));
  }

  /** Our token at the moment; undefined before we have enrolled. */
  async token(): Promise<string | undefined> {
    return this.identity?.then(
      ({ token }) => token,
      () => undefined,
    );
  }

  private current(why: 'stored' | 'refused' = 'stored'): Promise<Enrolled> {
    if (!this.identity) {
      const fresh = this.obtain(why);
      this.identity = fresh;
      fresh.catch(() => {
        if (this.identity === fresh) this.identity = undefined;
      });
    }
    return this.identity;
  }

  private async obtain(why: 'stored' | 'refused'): Promise<Enrolled> {
    const stored = why === 'stored' ? await this.store.load() : undefined;
    if (stored) return stored;
    const { config } = this;
    const identity = await this.client.enrol(config.PERCH_JOIN_KEY, {
      kind: 'server',
      name: config.PERCH_NAME,
      labels: config.PERCH_LABELS,
      ...this.address,
      previousLineage: this.lineage,
    });
    await this.store.save(identity);
    this.logger.info('enrolled', { server: identity.id, pool: identity.pool, again: why === 'refused' });
    return identity;
  }
}
