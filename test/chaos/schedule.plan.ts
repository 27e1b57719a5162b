import type { PartKind } from '../support/fleet-part.ts';
import type { LinkKind } from '../support/fleet-stack.ts';
import { seededRandom } from '../support/random.ts';

/** What can be made to fail in one fleet. */
export interface ChaosWorld {
  parts: readonly { kind: PartKind; name: string }[];
  links: readonly { kind: LinkKind; name: string }[];
  /** Server whose disk is small enough to be filled; undefined: none could be made. */
  smallDisk: string | undefined;
  servers: readonly string[];
  /** A model that kills its server can be given: only a real Triton runs Python. */
  crashModel: boolean;
  routerGraceMs: number;
}

export type Fault =
  | { kind: 'kill' | 'end' | 'freeze'; target: string }
  | { kind: 'cut' | 'slow' | 'hole'; target: string; delayMs: number; bytesPerSecond: number }
  | { kind: 'fill-disk' | 'corrupt-cache'; target: string }
  | { kind: 'corrupt-objects' | 'crash-model' | 'restore-backup' | 'upgrade-schema' };
export interface ScheduledFault {
  fault: Fault;
  atMs: number;
  /** Until it is healed. */
  durationMs: number;
}

interface Card {
  fault: Fault;
  /** Shortest and longest, in ms. */
  lasts: readonly [number, number];
  /** In the first part of the time, because it takes long. */
  early?: boolean;
}

const partKinds: readonly PartKind[] = ['router', 'agent', 'control-plane', 'triton', 'postgres', 's3'];
/** What is ended by SIGTERM when it is replaced by a newer one. Routers not: whoever replaces one takes it out of the load first. */
const endsInOrder: ReadonlySet<PartKind> = new Set(['agent', 'control-plane', 'triton']);
const linkKinds: readonly LinkKind[] = [
  'router-triton',
  'agent-control',
  'router-control',
  'control-postgres',
  'to-s3',
];

/**
 * One seed's faults, in order of time: every kind of fault on every kind of target once, dealt in an order and onto
 * targets that the seed chooses, and as many more as there is time for. The same seed and world give the same faults.
 */
export function planSchedule(seed: number, world: ChaosWorld, totalMs: number): ScheduledFault[] {
  const random = seededRandom(seed);
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)]!;
  const longMs = Math.min(30_000, totalMs / 4);
  const deck = shuffled(dealOnce(world, pick, random, longMs), random);
  const lastAt = totalMs * 0.9;
  const gapMs = Math.min(2_500, lastAt / (deck.length + 1));
  const plan: ScheduledFault[] = [];
  for (let place = 0; (place + 1) * gapMs < lastAt; place += 1) {
    const card = deck.shift() ?? pick(dealOnce(world, pick, random, longMs).filter(({ early }) => !early));
    const [least, most] = card.lasts;
    const atMs = (place + random() * 0.9) * gapMs;
    const durationMs = least + random() * (most - least);
    plan.push({ fault: card.fault, atMs: Math.round(atMs), durationMs: Math.round(durationMs) });
  }
  return plan;
}

type Pick = <T>(all: readonly T[]) => T;

function dealOnce(world: ChaosWorld, pick: Pick, random: () => number, longMs: number): Card[] {
  return [...partCards(world, pick), ...linkCards(world, pick, random), ...specialCards(world, pick, longMs)];
}

function partCards({ parts }: ChaosWorld, pick: Pick): Card[] {
  return partKinds.flatMap((kind) => {
    const names = parts.filter((part) => part.kind === kind).map(({ name }) => name);
    if (names.length === 0) return [];
    const cards: Card[] = [
      { fault: { kind: 'kill', target: pick(names) }, lasts: [300, 5_000] },
      { fault: { kind: 'freeze', target: pick(names) }, lasts: [500, 6_000] },
    ];
    if (endsInOrder.has(kind)) cards.push({ fault: { kind: 'end', target: pick(names) }, lasts: [300, 3_000] });
    return cards;
  });
}

function linkCards({ links }: ChaosWorld, pick: Pick, random: () => number): Card[] {
  return linkKinds.flatMap((kind) => {
    const names = links.filter((link) => link.kind === kind).map(({ name }) => name);
    if (names.length === 0) return [];
    return (['cut', 'slow', 'hole'] as const).map((mode): Card => {
      const delayMs = Math.round(20 + random() * 200);
      const bytesPerSecond = Math.round(20_000 + random() * 500_000);
      return { fault: { kind: mode, target: pick(names), delayMs, bytesPerSecond }, lasts: [1_000, 7_000] };
    });
  });
}

function specialCards(world: ChaosWorld, pick: Pick, longMs: number): Card[] {
  const { links, routerGraceMs, parts } = world;
  const routerLinks = links.filter(({ kind }) => kind === 'router-control').map(({ name }) => name);
  const link = { delayMs: 0, bytesPerSecond: 0 };
  const cards: Card[] = [
    { fault: { kind: 'corrupt-cache', target: pick(world.servers) }, lasts: [0, 0] },
    { fault: { kind: 'corrupt-objects' }, lasts: [3_000, 8_000] },
    { fault: { kind: 'restore-backup' }, lasts: [longMs * 0.4, longMs * 0.8], early: true },
    { fault: { kind: 'upgrade-schema' }, lasts: [2_000, 10_000], early: true },
    {
      fault: { kind: pick(['cut', 'hole'] as const), target: pick(routerLinks), ...link },
      lasts: [routerGraceMs + 3_000, routerGraceMs + 6_000],
      early: true,
    },
    { fault: { kind: 'kill', target: 'postgres' }, lasts: [longMs, longMs], early: true },
  ];
  if (parts.some(({ kind }) => kind === 's3'))
    cards.push({ fault: { kind: 'kill', target: 's3' }, lasts: [longMs, longMs], early: true });
  if (world.smallDisk) cards.push({ fault: { kind: 'fill-disk', target: world.smallDisk }, lasts: [4_000, 10_000] });
  if (world.crashModel)
    cards.push({ fault: { kind: 'crash-model' }, lasts: [longMs * 0.5, longMs * 0.8], early: true });
  return cards;
}

/** Any order, but what takes long comes within the first two thirds. */
function shuffled(cards: Card[], random: () => number): Card[] {
  const keyed = cards.map((card) => ({ card, key: random() * (card.early ? 0.65 : 1) }));
  return keyed.sort((a, b) => a.key - b.key).map(({ card }) => card);
}
