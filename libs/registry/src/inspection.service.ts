import { Inject, Injectable } from '@nestjs/common';
import { AppError, type FileFacts } from '@perch/contracts';
import { LOGGER, type Logger } from '@perch/platform';
import { Transactions } from '@perch/platform/database';
import { ARTIFACT_STORE, type ArtifactStore } from './artifacts/artifact.store.ts';
import { BlobStore } from './blob.store.ts';
import { mainOnnxPath } from './framework.decide.ts';
import { type OnnxSight, readOnnx } from './onnx.source.ts';
import { planHeaderBytes, planVersion } from './plan-header.decide.ts';
import { type Inspection, UPLOAD_CHECKS, type UploadChecks } from './upload-checks.ts';
import { toFile } from './version.store.ts';
import type { VersionFileEntity } from './version-file.entity.ts';

const budgetMs = 10_000;
/** Files of one format that are looked into; a version of more is served all the same, it tells less. */
const mostFiles = 32;
const maxTextBytes = 262_144;
const isPlan = /\.(plan|engine|trt)$/i;

/** Looks into the files of a version as they lie in the store: ONNX graphs, TensorRT headers, configuration texts. */
@Injectable()
export class InspectionService {
  constructor(
    private readonly transactions: Transactions,
    private readonly blobs: BlobStore,
    @Inject(ARTIFACT_STORE) private readonly store: ArtifactStore,
    @Inject(LOGGER) private readonly logger: Logger,
    @Inject(UPLOAD_CHECKS) private readonly checks: UploadChecks,
  ) {}

  /** A file that does not tell is no fault: that is for the deployment to find out, not for the upload. */
  async inspect(versionId: string, files: readonly VersionFileEntity[]): Promise<Inspection> {
    const signal = AbortSignal.timeout(budgetMs);
    const main = mainOnnxPath(files.map((file) => file.path));
    const onnx = new Map<string, OnnxSight>();
    // The main graph first: it must not wait until the time is over.
    const graphs = files.filter(({ path }) => /\.onnx$/i.test(path)).sort((a, b) => first(main, b) - first(main, a));
    for (const file of graphs.slice(0, mostFiles)) {
      const sight = await this.graphOf(versionId, file, signal);
      if (sight) onnx.set(file.path, sight);
    }
    const tensorrt = await this.plansOf(versionId, files, signal);
    const signatures = new Map([...onnx].flatMap(([path, { signature }]) => (signature ? [[path, signature]] : [])));
    const faults = await this.checks.faults({
      files: files.map(toFile),
      graphs: signatures,
      text: (path, mostBytes) => this.textOf(files, path, mostBytes),
    });
    return { signature: signatures.get(main ?? '') ?? null, facts: factsOf(main, onnx, tensorrt), faults };
  }

  private async graphOf(
    versionId: string,
    file: VersionFileEntity,
    signal: AbortSignal,
  ): Promise<OnnxSight | undefined> {
    try {
      const read = (from: number, last: number) => this.bytes(file, from, last);
      const sight = await readOnnx(read, file.sizeBytes, signal);
      if (sight.fault) throw sight.fault;
      return sight;
    } catch (error) {
      this.logger.info('signature not readable', { version: versionId, path: file.path, error });
      return undefined;
    }
  }

  private async plansOf(
    versionId: string,
    files: readonly VersionFileEntity[],
    signal: AbortSignal,
  ): Promise<NonNullable<FileFacts['tensorrt']>> {
    const found: NonNullable<FileFacts['tensorrt']> = {};
    for (const file of files.filter(({ path }) => isPlan.test(path)).slice(0, mostFiles)) {
      if (signal.aborted) break;
      try {
        const header = await this.bytes(file, 0, Math.min(planHeaderBytes, file.sizeBytes) - 1);
        found[file.path] = { version: planVersion(header) };
      } catch (error) {
        this.logger.info('plan not readable', { version: versionId, path: file.path, error });
      }
    }
    return found;
  }

  private async textOf(files: readonly VersionFileEntity[], path: string, mostBytes = maxTextBytes): Promise<string> {
    const file = files.find((candidate) => candidate.path === path);
    if (!file) throw new AppError('not_found', `${path} is not in the version`);
    if (file.sizeBytes > mostBytes)
      throw new AppError('too_large', `${path} has ${file.sizeBytes} bytes; such a file has at most ${mostBytes}`);
    return file.sizeBytes === 0 ? '' : (await this.bytes(file, 0, file.sizeBytes - 1)).toString('utf8');
  }

  private async bytes(file: VersionFileEntity, from: number, last: number): Promise<Buffer> {
    if (last < from) return Buffer.alloc(0);
    const { objectKey } = await this.blobs.get(this.transactions.manager, file.blobId);
    const chunks: Buffer[] = [];
    for await (const chunk of await this.store.read(objectKey, { first: from, last })) chunks.push(chunk);
    return Buffer.concat(chunks);
  }
}

const first = (main: string | undefined, { path }: VersionFileEntity): number => (path === main ? 1 : 0);

/** The main graph's inputs and outputs are the version's signature; of the others they stand here. */
function factsOf(
  main: string | undefined,
  onnx: ReadonlyMap<string, OnnxSight>,
  tensorrt: NonNullable<FileFacts['tensorrt']>,
): FileFacts | null {
  const graphs: NonNullable<FileFacts['onnx']> = {};
  for (const [path, { opset, ir, signature }] of onnx)
    if (opset !== null && ir !== null)
      graphs[path] = { opset, ir, ...(path !== main && signature ? { signature } : {}) };
  const facts: FileFacts = {
    ...(Object.keys(graphs).length > 0 ? { onnx: graphs } : {}),
    ...(Object.keys(tensorrt).length > 0 ? { tensorrt } : {}),
  };
  return Object.keys(facts).length > 0 ? facts : null;
}
