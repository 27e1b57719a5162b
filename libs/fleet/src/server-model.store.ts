import { Injectable } from '@nestjs/common';
import type { Tx } from '@perch/platform/database';
import { serverDocument } from './documents/document.store.ts';
import type { Memory } from './placement/memory.plan.ts';
import type { ModelSight } from './server-model.plan.ts';

interface DesiredRow {
  key: string;
  needs: string[] | null;
  ram_bytes: string | null;
  gpu_bytes: string | null;
}

/** What one server should hold against what it holds, for people: read at their request, never by a loop. Three queries. */
@Injectable()
export class ServerModelStore {
  async ofServer(tx: Tx, id: string): Promise<ModelSight[]> {
    const desired: DesiredRow[] = await tx.query(
      `select e.key, e.value -> 'needs' as needs, k.ram_bytes, k.gpu_bytes
       from document_entries e join servers s on s.id = $2
       left join model_memory k on k.digest = e.value ->> 'digest' and k.device = s.device
       where e.document_id = $1 and e.section = 'models' and e.digest is not null`,
      [serverDocument(id), id],
    );
    const observed: {
      name: string;
      state: ObservedText;
      reason: string | null;
      since: Date;
      memory: ReportedMemory;
    }[] = await tx.query(
      'select triton_model as name, state, reason, since, memory from server_models where server_id = $1',
      [id],
    );
    const placements: (ModelSight['placements'][number] & { name: string })[] = await tx.query(
      `select p.triton_model as name, p.endpoint, p.state, p.waits, p.yields from placements p
       where p.server_id = $1 and p.state <> 'released'
       union all
       select n.name, p.endpoint, p.state, null, false from placement_needs n join placements p using (deployment_id, server_id)
       where n.server_id = $1 and p.state <> 'released'`,
      [id],
    );
    const names = new Set([...desired.map(({ key }) => key), ...[...observed, ...placements].map(({ name }) => name)]);
    const wanted = new Map(desired.map((row) => [row.key, row]));
    const seen = new Map(observed.map((row) => [row.name, row]));
    return [...names].sort().map((name): ModelSight => {
      const row = wanted.get(name);
      const told = seen.get(name);
      return {
        name,
        desired: row !== undefined,
        needs: row?.needs ?? [],
        observed: told ? { state: told.state, reason: told.reason, since: told.since.toISOString() } : null,
        memory: memoryOf(row, told?.memory ?? null),
        placements: placements.filter((placement) => placement.name === name),
      };
    });
  }
}

type ObservedText = NonNullable<ModelSight['observed']>['state'];
type ReportedMemory = { ramBytes: number; gpuBytes: Record<string, number> } | null;

function memoryOf(row: DesiredRow | undefined, reported: ReportedMemory): Memory | null {
  if (row?.ram_bytes) return { ramBytes: Number(row.ram_bytes), gpuBytes: Number(row.gpu_bytes) };
  if (!reported) return null;
  const gpuBytes = Object.values(reported.gpuBytes).reduce((sum, bytes) => sum + bytes, 0);
  return { ramBytes: reported.ramBytes, gpuBytes };
}
