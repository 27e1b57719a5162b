import { documentSchema } from '@perch/contracts';

export interface FleetOptions {
  /** A router that was not heard of for so long no longer holds back an unload. Default 10 min. */
  routerGraceMs: number;
  /** A server without a word for so long gets nothing new and nobody waits for it. Default 10 s. */
  serverSilentMs: number;
  /** A server without a word for so long loses what was placed on it. Default 10 min. */
  serverLostMs: number;
  /** Newest schema of documents that is given out. Default: the newest there is; one less while a fleet is upgraded. */
  documentSchema: number;
}
export const defaultFleetOptions: FleetOptions = {
  routerGraceMs: 600_000,
  serverSilentMs: 10_000,
  serverLostMs: 600_000,
  documentSchema,
};
export const FLEET_OPTIONS = Symbol('fleet options');

/**
 * Without a sweep for so long nobody was watching (all control planes stopped, or the database was restored): then
 * silence counts from when somebody watches again. Several sweeps long, and shorter than what silence is punished for.
 */
export const asleepMs = ({ routerGraceMs }: FleetOptions): number =>
  Math.max(5_000, Math.min(30_000, routerGraceMs / 2));

/** The same for silence that is noticed within seconds: a control plane that restarts in ten must not find its servers silent. */
export const serverAsleepMs = ({ serverSilentMs }: FleetOptions): number => serverSilentMs / 2;
