export { AccessModule } from './access.module.ts';
export { AuditService } from './audit.service.ts';
export { AuthenticationService } from './authentication.service.ts';
export { ChangeService } from './change.service.ts';
export { IdempotencyService, type IdempotencyTimes, type KeptAnswer, type OnceWork } from './idempotency.service.ts';
export { type JoinGrant, JoinKeyService } from './join-key.service.ts';
export { KeyService } from './key.service.ts';
export type { InferenceKey } from './key.store.ts';
export { eventChannel, OutboxService } from './outbox.service.ts';
