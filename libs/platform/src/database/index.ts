export { CHANGE_LOG, type ChangeLog } from './change.log.ts';
export { DatabaseModule } from './database.module.ts';
export { migrate, migrateDown } from './migrate.ts';
export { DATABASE_OPTIONS, type DatabaseOptions } from './options.ts';
export { brokenConstraint, isConnectionLoss, Transactions, type Tx } from './transactions.ts';
export { Wakeups } from './wakeup.source.ts';
export { type Loop, LoopRunner, type Outcome } from './work.loop.ts';
export { type Claim, WorkStore } from './work.store.ts';
