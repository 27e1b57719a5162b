import { Injectable } from '@nestjs/common';
import { AppError, type WorkerEvidence } from '@perch/contracts';
import type { Tx } from '@perch/platform/database';
import type { EvidenceScope, RolloutEvidence } from './evidence.entity.ts';

const notYet = () => new AppError('not_available_yet', 'evidence is not read yet');

/** What routers counted of rollouts: taken idempotently, read as what decisions look at. */
@Injectable()
export class EvidenceService {
  /** Never throws for what one row says: rows that cannot be taken are counted, logged and left out. */
  async take(_router: string, _bootId: string, _evidence: readonly WorkerEvidence[]): Promise<void> {
    throw notYet();
  }

  async read(_tx: Tx, _scope: EvidenceScope): Promise<RolloutEvidence> {
    throw notYet();
  }
}
