import type { MixedList } from 'typeorm';

export interface DatabaseOptions {
  /** postgres://user:password@host:port/database */
  url: string;
  /** Migration classes, oldest first. */
  migrations: MixedList<new () => object>;
  poolSize?: number;
  /** The program opens the `DataSource` itself, so that it can start, and say what is wrong, while Postgres is away. */
  connectLater?: boolean;
  /** Schema to work in (tests give each file its own). */
  schema?: string;
}
export const DATABASE_OPTIONS = Symbol('database options');
