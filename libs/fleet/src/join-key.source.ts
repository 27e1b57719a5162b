/** What a join key lets its bearer become. */
export interface JoinGrant {
  joins: 'server' | 'router';
  /** Null for routers. */
  pool: string | null;
}

/** Where join keys live; bound to the keys of the control plane. Resolves to null for an unknown or revoked key. */
export interface JoinKeySource {
  find(secret: string): Promise<JoinGrant | null>;
}
export const JOIN_KEYS = Symbol('join keys');
