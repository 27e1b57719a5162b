import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Module } from '@nestjs/common';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { LOGGER, silentLogger } from '@perch/platform';
import { ARTIFACT_STORE, type ArtifactStore, FolderStore, S3Store } from '@perch/registry';
import { StorePath } from '../../apps/control-plane/src/store-api/store.path.ts';
import { findS3, type RealS3, startS3 } from '../../scripts/real-s3.mjs';
import { registerRealPart } from './real-parts.ts';

registerRealPart('s3', () => {
  const { reason } = findS3();
  return reason && `no real S3 server: ${reason}`;
});

export { type RealS3, startS3 };

/** A store under test, reachable by its signed URLs. */
export interface TestStore {
  store: ArtifactStore;
  close(): Promise<void>;
}

@Module({})
class NothingModule {}

/** A folder store on a folder of its own, served as the control plane serves it. */
export async function openTestFolder(now?: () => number): Promise<TestStore & { root: string }> {
  const root = await mkdtemp(join(tmpdir(), 'perch-objects-'));
  let address = '';
  const store = await FolderStore.open({
    root,
    publicUrl: () => address,
    signingKey: async () => 'a signing key of the tests',
    now,
  });
  const module = await Test.createTestingModule({
    imports: [NothingModule],
    providers: [StorePath, { provide: ARTIFACT_STORE, useValue: store }, { provide: LOGGER, useValue: silentLogger }],
  }).compile();
  const app = module.createNestApplication<NestFastifyApplication>(new FastifyAdapter({ bodyLimit: 1_000 }));
  await app.listen(0, '127.0.0.1');
  address = await app.getUrl();
  const close = async () => {
    await app.close();
    await rm(root, { recursive: true, force: true });
  };
  return { store, root, close };
}

/** Options of an S3 store on this server, below a prefix of its own. */
export const s3Options = (server: RealS3) => ({
  bucket: server.bucket,
  prefix: `t-${randomBytes(6).toString('hex')}`,
  endpoint: server.endpoint,
  region: 'us-east-1',
  accessKeyId: server.accessKeyId,
  secretAccessKey: server.secretAccessKey,
});

export const openTestS3 = (server: RealS3): S3Store => new S3Store(s3Options(server));
