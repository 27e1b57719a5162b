import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type DynamicModule, Global, Module } from '@nestjs/common';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import type { Actor, BlobUpload, CreateVersion, ManifestFile, Version, VersionUpload } from '@perch/contracts';
import { LOGGER, Metrics, silentLogger } from '@perch/platform';
import { CHANGE_LOG, type ChangeLog, DatabaseModule } from '@perch/platform/database';
import {
  ARTIFACT_STORE,
  type ArtifactStore,
  type ImportOptions,
  RegistryModule,
  RegistryService,
  type StoreOptions,
  SweepService,
} from '@perch/registry';
import { StorePath } from '../../apps/control-plane/src/store-api/store.path.ts';
import { createTestDatabase, type TestDatabase } from './postgres.ts';

export const publisher: Actor = { id: 'k1', name: 'ann', role: 'publisher', projects: [], endpoints: [] };
export const scoped = (...projects: string[]): Actor => ({ ...publisher, id: 'k2', name: 'bob', projects });

export interface Change {
  actor: string;
  action: string;
  subject: string;
}

/** Writes what happened into a table, so that a change rolled back is rolled back here too. */
class TestChangeLog implements ChangeLog {
  async record(...[tx, actor, action, subject, detail]: Parameters<ChangeLog['record']>): Promise<void> {
    await tx.query('insert into test_changes (actor, action, subject, detail) values ($1, $2, $3, $4)', [
      actor.name,
      action,
      subject,
      JSON.stringify(detail),
    ]);
  }
}

@Global()
@Module({})
class OutsideModule {
  static forRoot(): DynamicModule {
    const providers = [
      { provide: LOGGER, useValue: silentLogger },
      { provide: Metrics, useValue: new Metrics() },
      { provide: CHANGE_LOG, useValue: new TestChangeLog() },
    ];
    return { module: OutsideModule, providers, exports: providers };
  }
}

export interface TestRegistry {
  registry: RegistryService;
  sweep: SweepService;
  /** Any part of it. */
  // biome-ignore lint/suspicious/noExplicitAny: any class of the module
  get<T>(token: abstract new (...args: any[]) => T): T;
  store: ArtifactStore;
  database: TestDatabase;
  /** Folder of the folder store. */
  folder: string;
  changes(): Promise<Change[]>;
  /** All rows of all registry tables, to show that nothing changed. */
  everything(): Promise<unknown>;
  close(): Promise<void>;
}

export interface TestRegistryOptions {
  /** Default: a folder of its own, served on a free port. */
  store?: Pick<StoreOptions, 'url' | 's3'>;
  database?: TestDatabase;
  folder?: string;
  imports?: ImportOptions;
}

/** The registry on a real Postgres with a real store, without keys and loops around it. */
export async function startTestRegistry(options: TestRegistryOptions = {}): Promise<TestRegistry> {
  const database = options.database ?? (await createTestDatabase());
  await database.query(
    'create table if not exists test_changes (id serial primary key, actor text, action text, subject text, detail jsonb)',
  );
  const folder = options.folder ?? (await mkdtemp(join(tmpdir(), 'perch-registry-')));
  let address = '';
  const store = { url: pathToFileURL(folder).href, publicUrl: () => address, ...options.store };
  const module = await Test.createTestingModule({
    imports: [
      OutsideModule.forRoot(),
      DatabaseModule.forRoot(database),
      RegistryModule.forRoot({ store, imports: options.imports }),
    ],
    providers: [StorePath],
  }).compile();
  const app = module.createNestApplication<NestFastifyApplication>(new FastifyAdapter({ bodyLimit: 1_000 }));
  await app.listen(0, '127.0.0.1');
  address = await app.getUrl();
  const tables = ['models', 'versions', 'version_files', 'processing_modules', 'blobs', 'test_changes', 'work'];
  return {
    registry: app.get(RegistryService),
    sweep: app.get(SweepService),
    get: (token) => app.get(token as never),
    store: app.get(ARTIFACT_STORE),
    database,
    folder,
    changes: async () => (await database.query('select * from test_changes order by id')) as Change[],
    everything: async () => Promise.all(tables.map((table) => database.query(`select * from ${table} order by 1, 2`))),
    close: async () => {
      await app.close();
      if (!options.database) await database.drop();
      if (!options.folder) await rm(folder, { recursive: true, force: true });
    },
  };
}

export const sha256Of = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
export const fileOf = (path: string, bytes: Uint8Array): ManifestFile => ({
  path,
  sha256: sha256Of(bytes),
  size: bytes.length,
});
/** Bytes that no other test has. */
export const newBytes = (size = 100): Buffer => randomBytes(size);

/** Sends one blob as a client would; `parts` limits which parts of a multipart are sent. */
export async function send(blob: BlobUpload, bytes: Uint8Array, parts?: readonly number[]): Promise<number[]> {
  if (blob.method === 'put')
    return [(await fetch(blob.url!, { method: 'PUT', headers: blob.headers, body: Buffer.from(bytes) })).status];
  const wanted = blob.parts!.filter((part) => parts === undefined || parts.includes(part.partNumber));
  return Promise.all(
    wanted.map(async ({ partNumber, url }) => {
      const from = (partNumber - 1) * blob.partSize!;
      const body = Buffer.from(bytes.subarray(from, from + blob.partSize!));
      return (await fetch(url, { method: 'PUT', body })).status;
    }),
  );
}

/** Creates, sends and completes a version of these files. */
export async function upload(
  { registry }: Pick<TestRegistry, 'registry'>,
  model: string,
  files: Record<string, Uint8Array>,
  extra: Partial<CreateVersion> = {},
  actor: Actor = publisher,
): Promise<Version> {
  const [project, name] = model.split('/') as [string, string];
  const listed = Object.entries(files).map(([path, bytes]) => fileOf(path, bytes));
  const created: VersionUpload = await registry.createVersion(actor, project, name, { files: listed, ...extra });
  for (const blob of created.missing) {
    const file = listed.find((entry) => entry.sha256 === blob.sha256)!;
    const statuses = await send(blob, files[file.path]!);
    if (statuses.some((status) => status !== 200)) throw new Error(`sending ${file.path}: ${statuses}`);
  }
  return registry.completeVersion(actor, project, name, created.version.number);
}
