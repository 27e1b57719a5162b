import { randomUUID } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { AppError, type Enrol, type Enrolled, systemActor } from '@perch/contracts';
import { CHANGE_LOG, type ChangeLog, Transactions, type Tx, WorkStore } from '@perch/platform/database';
import { FleetStore } from './fleet.store.ts';
import { Installation } from './installation.service.ts';
import type { JoinGrant } from './join-key.source.ts';
import { hashToken, newToken } from './token.ts';
import { theOnlyKey, work } from './work.ts';

type ServerEnrol = Extract<Enrol, { kind: 'server' }>;

interface Identity {
  id: string;
  pool: string | null;
  isNew: boolean;
}

/** A server of the same name that was quiet for so long is taken for the same machine come back. */
const predecessorSilentMs = 15_000;

/** Turns a join key into an id and a token. */
@Injectable()
export class EnrolmentService {
  constructor(
    private readonly transactions: Transactions,
    private readonly stores: FleetStore,
    private readonly installation: Installation,
    private readonly workStore: WorkStore,
    @Inject(CHANGE_LOG) private readonly changes: ChangeLog,
  ) {}

  /** Throws `forbidden` when the key is for the other kind. The token is in the answer and nowhere else. */
  async enrol(grant: JoinGrant, request: Enrol): Promise<Enrolled> {
    if (grant.joins !== request.kind)
      throw new AppError('forbidden', `this join key is for a ${grant.joins}; a ${request.kind} wants one of its own`);
    const token = newToken();
    const { id, pool, isNew } = await this.transactions.run((tx) =>
      request.kind === 'server'
        ? this.enrolServer(tx, request, grant.pool ?? 'default', token)
        : this.enrolRouter(tx, request.name, token),
    );
    await this.checkLineage(request, isNew);
    return { id, token, pool };
  }

  private async enrolServer(tx: Tx, request: ServerEnrol, pool: string, token: string): Promise<Identity> {
    const { name, labels, http, grpc } = request;
    const known = await this.stores.servers.findPredecessor(tx, name, http, predecessorSilentMs);
    const id = known?.id ?? randomUUID();
    await this.stores.servers.put(tx, { id, name, pool, labels, http, grpc, tokenHash: hashToken(token) });
    await this.changes.record(tx, systemActor, 'server.enrol', id, { name, pool, http, again: known !== undefined });
    if (known)
      for (const endpoint of await this.stores.placements.endpointsOn(tx, id))
        await this.workStore.enqueue(tx, work.endpoint, endpoint);
    await this.workStore.enqueue(tx, work.pool, pool);
    await this.workStore.enqueue(tx, work.server, id);
    await this.workStore.enqueue(tx, work.routingTable, theOnlyKey);
    return { id, pool, isNew: known === undefined };
  }

  private async enrolRouter(tx: Tx, name: string, token: string): Promise<Identity> {
    const id = randomUUID();
    await this.stores.routers.insert(tx, id, name, hashToken(token));
    await this.changes.record(tx, systemActor, 'router.enrol', id, { name });
    return { id, pool: null, isNew: true };
  }

  /**
   * Whoever followed a lineage that we never had, or a server that followed us and that we do not know, proves that the
   * database went back in time. (A router that we do not know may have been forgotten on purpose.)
   */
  private async checkLineage({ kind, name, previousLineage }: Enrol, isNew: boolean): Promise<void> {
    if (previousLineage === null) return;
    const { lineage, pastLineages } = await this.installation.current();
    const ours = lineage === previousLineage || pastLineages.includes(previousLineage);
    if (ours && !(kind === 'server' && isNew)) return;
    await this.installation.rotate(lineage, previousLineage, `${kind} ${name} followed lineage ${previousLineage}`);
  }
}
