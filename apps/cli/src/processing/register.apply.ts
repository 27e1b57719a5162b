import {
  AppError,
  type ModuleUpload,
  moduleName,
  type ProcessingModuleRecord,
  parseWith,
  type RegisterModule,
} from '@perch/contracts';
import type { AdminClient } from '../admin.client.ts';
import { startProgress } from '../progress.ts';
import { sendPieces } from '../upload/blob.apply.ts';
import { bytesOf, planPieces } from '../upload/blob.plan.ts';
import { type PreparedModule, prepareModule } from './prepared-module.ts';

const lanes = 4;
const rounds = 5;
const registerTimeoutMs = 10 * 60_000;

export interface RegisteredModule {
  module: ProcessingModuleRecord;
  /** The newest one of this name held exactly the same. */
  outcome: 'registered' | 'already there';
  sentBytes: number;
}

export const modulePath = (name: string): string => `/modules/${encodeURIComponent(name)}`;

/** Sends what the store lacks and registers; done again after any failure it goes on where it stopped. */
export async function registerModule(
  client: AdminClient,
  name: string,
  prepared: PreparedModule,
  { description, progress }: { description?: string | undefined; progress: boolean },
): Promise<RegisteredModule> {
  parseWith(moduleName, name, `module ${JSON.stringify(name)}`);
  const body: RegisterModule = { facts: prepared.facts, files: prepared.manifest, description };
  const ask = () => client.call<ModuleUpload>(`${modulePath(name)}/uploads`, { method: 'POST', body });
  const first = await ask();
  if (first.module) return { module: first.module, outcome: 'already there', sentBytes: 0 };
  let pieces = planPieces(first.missing);
  const sentBytes = bytesOf(pieces);
  const shown = await startProgress('uploading', sentBytes, progress);
  try {
    for (let round = 1; pieces.length > 0; round += 1) {
      const { expired } = await sendPieces(client, pieces, prepared.files, lanes, shown);
      if (!expired) break;
      if (round >= rounds)
        throw new AppError(
          'forbidden',
          'the artifact store refuses its own fresh URLs (403); are the clocks in step? perch doctor',
        );
      pieces = planPieces((await ask()).missing);
    }
  } finally {
    shown.end();
  }
  const module = await client.call<ProcessingModuleRecord>(modulePath(name), {
    method: 'POST',
    body,
    timeoutMs: registerTimeoutMs,
  });
  return { module, outcome: 'registered', sentBytes };
}

/** A file or folder of TypeScript, checked and registered; `note` hears what is worth saying. For verbs that bind it then. */
export async function addModule(
  client: AdminClient,
  name: string,
  place: string,
  note: (sentence: string) => void = () => undefined,
): Promise<RegisteredModule> {
  const prepared = await prepareModule(place);
  try {
    for (const sentence of prepared.notes) note(sentence);
    return await registerModule(client, name, prepared, { progress: false });
  } finally {
    await prepared.close();
  }
}
