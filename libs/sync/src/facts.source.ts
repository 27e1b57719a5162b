import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ServerFacts } from '@perch/contracts';
import type { GpuKind, GpuMemory } from './gpu.source.ts';

export interface FactsSettings {
  host: string;
  supervised: boolean;
  /** What the back-ends are, where somebody says so. */
  backends?: readonly string[] | undefined;
  /** Triton's folder of back-ends, one folder each. */
  backendDirectory?: string | undefined;
  tensorrt?: string | undefined;
  onnxruntime?: string | undefined;
}

export interface FactsParts {
  gpus(): Promise<GpuMemory[]>;
  gpuKinds(): Promise<Map<string, GpuKind>>;
  ramBytes(): number | null;
  now(): number;
}

const goodForMs = 60_000;
const gpuPatienceMs = 30_000;
/** Where Triton's images keep the libraries that back-ends are linked to. */
const libraryFolders = [
  '/usr/lib/x86_64-linux-gnu',
  '/usr/lib/aarch64-linux-gnu',
  '/opt/tritonserver/lib',
  '/usr/local/lib',
];

const listed = (folder: string) => readdir(folder, { withFileTypes: true }).catch(() => undefined);

/** Version in the name of a shared library, of the longest such name: `libnvinfer.so.10.7.0` says 10.7.0. */
export function libraryVersion(names: readonly string[], library: string): string | null {
  const prefix = `${library}.so.`;
  const versions = names
    .filter((name) => name.startsWith(prefix))
    .map((name) => name.slice(prefix.length))
    .filter((version) => /^\d+(\.\d+)*$/.test(version));
  return versions.sort((a, b) => b.length - a.length)[0] ?? null;
}

/** A back-end is a folder that holds its library, or the model.py of one written in Python. */
async function listBackends(folder: string): Promise<string[] | null> {
  const entries = await listed(folder);
  if (!entries) return null;
  const names = entries.filter((entry) => entry.isDirectory() || entry.isSymbolicLink()).map(({ name }) => name);
  const kept = await Promise.all(
    names.map(async (name) => {
      const files = (await listed(join(folder, name)))?.map((file) => file.name) ?? [];
      return files.includes('model.py') || files.some((file) => /^libtriton_.*\.so$/.test(file));
    }),
  );
  return names.filter((_, n) => kept[n]).sort();
}

async function findVersion(library: string, folders: readonly string[]): Promise<string | null> {
  for (const folder of folders) {
    const version = libraryVersion((await listed(folder))?.map(({ name }) => name) ?? [], library);
    if (version !== null) return version;
  }
  return null;
}

/** What the server is, as far as it can be found out: settings first, then folders, metrics and the driver's tool. */
export class FactsSource {
  private readonly parts: FactsParts;
  private readonly settings: FactsSettings;
  private kinds: Map<string, GpuKind> | undefined;
  private firstTryAt: number | undefined;
  private known: { facts: ServerFacts; at: number } | undefined;

  constructor(parts: FactsParts, settings: FactsSettings) {
    this.parts = parts;
    this.settings = settings;
  }

  /** Undefined while its GPUs are not known yet: to be told of as a server without any would get its work taken away. */
  async read(): Promise<ServerFacts | undefined> {
    const now = this.parts.now();
    if (this.known && now - this.known.at < goodForMs) return this.known.facts;
    this.firstTryAt ??= now;
    const gpus = await this.parts.gpus().catch(() => undefined);
    // A metrics port that stays closed: then it is taken for one without GPUs.
    const given = gpus ?? (now - this.firstTryAt > gpuPatienceMs ? [] : undefined);
    if (gpus || (given && !this.known)) this.known = { facts: await this.describe(given ?? []), at: now };
    return this.known?.facts;
  }

  private async describe(gpus: readonly GpuMemory[]): Promise<ServerFacts> {
    const { host, supervised, backends, backendDirectory, tensorrt, onnxruntime } = this.settings;
    const inBackend = (name: string) => (backendDirectory === undefined ? [] : [join(backendDirectory, name)]);
    // Libraries of this machine say nothing about a server in another container.
    const beside = supervised ? libraryFolders : [];
    return {
      host,
      supervised,
      backends: backends ? [...backends].sort() : backendDirectory ? await listBackends(backendDirectory) : null,
      tensorrt: tensorrt ?? (await findVersion('libnvinfer', [...inBackend('tensorrt'), ...beside])),
      onnxruntime: onnxruntime ?? (await findVersion('libonnxruntime', inBackend('onnxruntime'))),
      gpus: await this.nameGpus(gpus),
      ramBytes: this.parts.ramBytes(),
    };
  }

  private async nameGpus(gpus: readonly GpuMemory[]): Promise<ServerFacts['gpus']> {
    if (gpus.length > 0) this.kinds ??= await this.parts.gpuKinds();
    return gpus.map(({ uuid, totalBytes }) => {
      const kind = this.kinds?.get(uuid);
      return { uuid, name: kind?.name ?? null, computeCapability: kind?.computeCapability ?? null, totalBytes };
    });
  }
}
