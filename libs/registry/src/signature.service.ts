import { Inject, Injectable } from '@nestjs/common';
import type { Signature } from '@perch/contracts';
import { LOGGER, type Logger } from '@perch/platform';
import { Transactions } from '@perch/platform/database';
import { ARTIFACT_STORE, type ArtifactStore } from './artifacts/artifact.store.ts';
import { BlobStore } from './blob.store.ts';
import { mainOnnxPath } from './framework.decide.ts';
import { readOnnxSignature } from './onnx.source.ts';
import type { VersionFileEntity } from './version-file.entity.ts';

const budgetMs = 10_000;

/** The inputs and outputs of a version, read out of its ONNX file as it lies in the store. */
@Injectable()
export class SignatureService {
  constructor(
    private readonly transactions: Transactions,
    private readonly blobs: BlobStore,
    @Inject(ARTIFACT_STORE) private readonly store: ArtifactStore,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  /** Null when there is no ONNX file or it does not tell: that is for the deployment to find out, not for the upload. */
  async read(versionId: string, files: readonly VersionFileEntity[]): Promise<Signature | null> {
    const path = mainOnnxPath(files.map((file) => file.path));
    const file = files.find((candidate) => candidate.path === path);
    if (!file) return null;
    try {
      const { objectKey } = await this.blobs.get(this.transactions.manager, file.blobId);
      const read = async (first: number, last: number): Promise<Buffer> => {
        const chunks: Buffer[] = [];
        for await (const chunk of await this.store.read(objectKey, { first, last })) chunks.push(chunk);
        return Buffer.concat(chunks);
      };
      return await readOnnxSignature(read, file.sizeBytes, AbortSignal.timeout(budgetMs));
    } catch (error) {
      this.logger.info('signature not readable', { version: versionId, path, error });
      return null;
    }
  }
}
