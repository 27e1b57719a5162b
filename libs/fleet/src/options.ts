export interface FleetOptions {
  /** A router that was not heard of for so long no longer holds back an unload. Default 10 min. */
  routerGraceMs: number;
  /** A server without a word for so long gets nothing new and nobody waits for it. Default 10 s. */
  serverSilentMs: number;
  /** A server without a word for so long loses what was placed on it. Default 10 min. */
  serverLostMs: number;
}
export const defaultFleetOptions: FleetOptions = {
  routerGraceMs: 600_000,
  serverSilentMs: 10_000,
  serverLostMs: 600_000,
};
export const FLEET_OPTIONS = Symbol('fleet options');
