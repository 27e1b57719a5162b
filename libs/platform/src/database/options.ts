import type { MixedList } from 'typeorm';

export interface DatabaseOptions {
  /** postgres://user:password@host:port/database */
  url: string;
  /** Migration classes, oldest first. */
  migrations: MixedList<new () => object>;
  poolSize?: number;
  /** Schema to work in (tests give each file its own). */
  schema?: string;
}
export const DATABASE_OPTIONS = Symbol('database options');
