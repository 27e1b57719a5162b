import type { DesiredModel, ObservedModel, ServerFacts } from '@perch/contracts';
import type { ModelFacts, PlannedServer } from './placement-world.ts';
import { type ModelVariant, neededName } from './variant.ts';

/** Bytes of RAM, and of GPU memory over all GPUs of a server together. */
export interface Memory {
  ramBytes: number;
  gpuBytes: number;
}

/** Runtimes keep buffers and a copy or two of the weights: half as much again as the files is a fair first guess. */
const guessFactor = 1.5;
const mebibyte = 1_048_576;

/** What a model probably takes before anybody measured it: what the user said, else 1.5 × its files. */
export const guessBytes = (model: DesiredModel, declared: number | null = null): number =>
  declared ?? Math.ceil(guessFactor * model.files.reduce((sum, { size }) => sum + size, 0));

/** Whether it takes GPU memory where there is a GPU. Triton's own default is a GPU instance. */
export const runsOnGpu = ({ engine }: DesiredModel): boolean =>
  engine.instances.length === 0 || engine.instances.some(({ kind }) => kind !== 'cpu');

/** What memory was measured on; models of GPU servers without a name are not told apart. */
export const deviceOf = (facts: ServerFacts | null | undefined): string => {
  const [gpu] = facts?.gpus ?? [];
  return gpu ? (gpu.name ?? 'gpu') : 'cpu';
};

export const memoryKey = (digest: string, device: string): string => `${digest} ${device}`;

export const measuredMemory = ({ ramBytes, gpuBytes }: NonNullable<ObservedModel['memory']>): Memory => ({
  ramBytes: Math.max(0, ramBytes),
  gpuBytes: Math.max(0, sum(Object.values(gpuBytes))),
});

/** Ensembles hold nothing themselves. */
const takesMemory = ({ engine }: DesiredModel) => engine.platform !== 'ensemble';

function modelMemory(model: DesiredModel, declared: number | null, server: PlannedServer, facts: ModelFacts): Memory {
  const measured = facts.measured.get(memoryKey(model.digest, server.device));
  if (measured) return measured;
  if (!takesMemory(model)) return { ramBytes: 0, gpuBytes: 0 };
  const bytes = guessBytes(model, declared);
  return server.device !== 'cpu' && runsOnGpu(model)
    ? { ramBytes: 0, gpuBytes: bytes }
    : { ramBytes: bytes, gpuBytes: 0 };
}

/** What a server would have to find room for: the model and what it needs, without what is there anyway. */
export function addedMemory(variant: ModelVariant, server: PlannedServer, facts: ModelFacts): Memory {
  const isNew = (name: string) => !facts.held.has(`${server.id} ${name}`);
  const parts = [
    ...(isNew(variant.tritonModel) ? [modelMemory(variant.model, variant.requires.memoryBytes, server, facts)] : []),
    ...uniqueBy(variant.needs, neededName)
      .filter(({ tritonModel }) => isNew(tritonModel))
      .map(({ model }) => modelMemory(model, null, server, facts)),
  ];
  return { ramBytes: sum(parts.map((part) => part.ramBytes)), gpuBytes: sum(parts.map((part) => part.gpuBytes)) };
}

/** Kept free on every server, for what runtimes take beside models: 5 %, at least 256 MiB and at most 2 GiB. */
export const reservedBytes = (totalBytes: number): number =>
  Math.min(2_048 * mebibyte, Math.max(256 * mebibyte, 0.05 * totalBytes));

/** Free bytes; null: nobody knows how much there is. What is placed and not loaded yet counts as taken. */
export interface Room {
  ramBytes: number | null;
  gpuBytes: number | null;
}

export function roomOf({ facts, usage, placed }: PlannedServer): Room {
  const left = (total: number, used: number, held: number) =>
    Math.floor(total - Math.max(used, held) - reservedBytes(total));
  const gpuTotal = sum((facts?.gpus ?? []).map(({ totalBytes }) => totalBytes));
  return {
    ramBytes: facts?.ramBytes ? left(facts.ramBytes, usage?.ramBytes ?? 0, placed.ramBytes) : null,
    gpuBytes: gpuTotal > 0 ? left(gpuTotal, sum(Object.values(usage?.gpuBytes ?? {})), placed.gpuBytes) : null,
  };
}

/** Whether a server has room for a variant and for `spare` more of its size; where nobody knows, there is. */
export function hasRoomFor(variant: ModelVariant, spare: number, server: PlannedServer, facts: ModelFacts): boolean {
  const one = addedMemory(variant, server, { ...facts, held: new Set() });
  const now = addedMemory(variant, server, facts);
  const room = roomOf(server);
  const fits = (kind: 'ramBytes' | 'gpuBytes') => room[kind] === null || now[kind] + spare * one[kind] <= room[kind];
  return fits('ramBytes') && fits('gpuBytes');
}

/** How full a server is by what is placed on it, from 0 to 1 and beyond; null: nobody knows how much there is. */
export function fillOf({ facts, placed }: PlannedServer): number | null {
  const gpuTotal = sum((facts?.gpus ?? []).map(({ totalBytes }) => totalBytes));
  const parts = [
    ...(facts?.ramBytes ? [placed.ramBytes / facts.ramBytes] : []),
    ...(gpuTotal > 0 ? [placed.gpuBytes / gpuTotal] : []),
  ];
  return parts.length > 0 ? Math.max(...parts) : null;
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

function uniqueBy<T>(items: readonly T[], keyOf: (item: T) => string): T[] {
  return [...new Map(items.map((item) => [keyOf(item), item])).values()];
}
