import { AppError } from '@perch/contracts';
import type { Logger } from '@perch/platform';
import type { ControlClient } from './control.client.ts';
import type { Identity, IdentityStore } from './identity.store.ts';

/** Gives the router its id and token: from disk, else by the join key. */
export class Enrolment {
  private readonly client: ControlClient;
  private readonly store: IdentityStore;
  private readonly settings: { name: string; joinKey: string | undefined };
  private readonly logger: Logger;
  private current: Identity | undefined;

  constructor(
    client: ControlClient,
    store: IdentityStore,
    settings: { name: string; joinKey: string | undefined },
    logger: Logger,
  ) {
    this.client = client;
    this.store = store;
    this.settings = settings;
    this.logger = logger;
  }

  get identity(): Identity | undefined {
    return this.current;
  }

  /** Throws `unavailable` while the control plane does not answer, `unauthenticated` without a valid join key. */
  async ensure(previousLineage: string | null): Promise<Identity> {
    this.current ??= await this.store.load();
    if (this.current) return this.current;
    const { joinKey, name } = this.settings;
    if (!joinKey)
      throw new AppError('unauthenticated', 'this router has no token: set PERCH_JOIN_KEY to a join key for routers');
    const { id, token } = await this.client.enrol(joinKey, name, previousLineage);
    await this.store.save({ id, token });
    this.current = { id, token };
    this.logger.info('enrolled', { router: id });
    return this.current;
  }

  /** The token was refused. The one on disk stays until a new one is there. */
  async renew(previousLineage: string | null): Promise<void> {
    const { joinKey, name } = this.settings;
    if (!joinKey)
      throw new AppError('unauthenticated', 'the token of this router was refused: set PERCH_JOIN_KEY to enrol again');
    const { id, token } = await this.client.enrol(joinKey, name, previousLineage);
    await this.store.save({ id, token });
    this.current = { id, token };
    this.logger.info('enrolled again', { router: id });
  }
}
