import { parseArgs } from 'node:util';

export interface ScaleOptions {
  endpoints: number;
  /** Versions each endpoint serves. */
  versions: number;
  servers: number;
  replicas: number;
  routers: number;
  controlPlanes: number;
  /** Versions published one after the other, each of another endpoint. */
  publishes: number;
  /** How long nothing happens, to know what idling costs. */
  idleSeconds: number;
  /** Least and most time that a simulated Triton takes to load a model. */
  loadMs: [number, number];
  seed: number;
}

export const smallScale: ScaleOptions = {
  endpoints: 100,
  versions: 2,
  servers: 20,
  replicas: 1,
  routers: 2,
  controlPlanes: 1,
  publishes: 10,
  idleSeconds: 5,
  loadMs: [20, 200],
  seed: 1,
};

const flags = {
  endpoints: 'endpoints',
  versions: 'versions',
  servers: 'servers',
  replicas: 'replicas',
  routers: 'routers',
  'control-planes': 'controlPlanes',
  publishes: 'publishes',
  'idle-seconds': 'idleSeconds',
  seed: 'seed',
} as const;

/** Settings of one run, and the file whose section of this size is to be written, if any. Throws on a word it does not know. */
export function readOptions(words: readonly string[]): { options: ScaleOptions; write: string | undefined } {
  const known = Object.keys(flags).map((name) => [name, { type: 'string' as const }]);
  const { values } = parseArgs({
    args: [...words],
    options: { ...Object.fromEntries(known), write: { type: 'string' } },
  });
  const given = values as Record<string, string | undefined>;
  const options = { ...smallScale };
  for (const [flag, field] of Object.entries(flags)) {
    const text = given[flag];
    if (text === undefined) continue;
    const value = Number(text);
    if (!Number.isInteger(value) || value < 1) throw new Error(`--${flag} wants a whole number from 1 on, not ${text}`);
    options[field] = value;
  }
  return { options, write: given['write'] };
}

/** The command that repeats a run: only what differs from the smallest one. */
export function commandOf(options: ScaleOptions): string {
  const words = Object.entries(flags)
    .filter(([, field]) => options[field] !== smallScale[field] || field === 'endpoints')
    .map(([flag, field]) => `--${flag} ${options[field]}`);
  return `npm run scale -- ${words.join(' ')}`;
}
