import { Inject, Injectable } from '@nestjs/common';
import { KeyService } from '@perch/access';
import type { Diagnosis } from '@perch/contracts';
import { migrations } from '@perch/migrations';
import { readDatabaseFacts, Transactions } from '@perch/platform/database';
import { StoreProbeService } from '@perch/registry';
import { CONFIG, type ControlPlaneConfig } from '../control-plane.config.ts';
import { programVersion } from '../program-version.ts';
import { answered } from './answer.source.ts';
import { diagnoseBasics } from './doctor.decide.ts';
import { diagnoseFleet } from './doctor-fleet.decide.ts';
import { DoctorFleetSource } from './doctor-fleet.source.ts';

const mostKeys = 500;
const loopback = ['127.0.0.1', '::1', 'localhost'];

/** Asks every part at once, each within its time, so that one that hangs does not hide the others. */
@Injectable()
export class DoctorService {
  constructor(
    private readonly transactions: Transactions,
    private readonly keys: KeyService,
    private readonly fleet: DoctorFleetSource,
    private readonly store: StoreProbeService,
    @Inject(CONFIG) private readonly config: ControlPlaneConfig,
  ) {}

  async examine(now = Date.now()): Promise<Diagnosis> {
    const { manager } = this.transactions;
    const [database, store, keys, fleet] = await Promise.all([
      answered('the database', readDatabaseFacts(manager, migrations)),
      answered('the artifact store', this.store.probe()),
      answered('the keys', this.keys.list(mostKeys)),
      this.fleet.ask(now),
    ]);
    const listensToOthers = !loopback.includes(this.config.PERCH_LISTEN.host);
    const findings = [
      ...diagnoseBasics({ now, database, store, keys, confirmed: fleet.confirmed, listensToOthers }),
      ...('fault' in database ? [] : diagnoseFleet(fleet)),
    ];
    const healthy = findings.every(({ severity }) => severity !== 'error');
    return { healthy, version: programVersion, now: new Date(now).toISOString(), findings };
  }
}
