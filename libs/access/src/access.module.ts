import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { CHANGE_LOG } from '@perch/platform/database';
import { AuditService } from './audit.service.ts';
import { AuditStore } from './audit.store.ts';
import { AuthenticationService } from './authentication.service.ts';
import { ChangeService } from './change.service.ts';
import { ChangeStore } from './change.store.ts';
import { IdempotencyService } from './idempotency.service.ts';
import { IdempotencyStore } from './idempotency.store.ts';
import { JoinKeyService } from './join-key.service.ts';
import { ApiKeyEntity, JoinKeyEntity } from './key.entity.ts';
import { KeyService } from './key.service.ts';
import { KeyStore } from './key.store.ts';
import { OutboxService } from './outbox.service.ts';
import { WebhookClient } from './webhook.client.ts';
import { WebhookService } from './webhook.service.ts';
import { WebhookStore } from './webhook.store.ts';
import { WebhookDeliveryService } from './webhook-delivery.service.ts';

const services = [
  AuditService,
  AuthenticationService,
  ChangeService,
  ChangeStore,
  IdempotencyService,
  JoinKeyService,
  KeyService,
  OutboxService,
  WebhookDeliveryService,
  WebhookService,
];
const changeLog = { provide: CHANGE_LOG, useExisting: ChangeService };

/** Who may do what, and who did what. Global, because every lib records its changes through `CHANGE_LOG`. */
@Global()
@Module({
  imports: [TypeOrmModule.forFeature([ApiKeyEntity, JoinKeyEntity])],
  providers: [...services, AuditStore, IdempotencyStore, KeyStore, WebhookClient, WebhookStore, changeLog],
  exports: [...services, changeLog],
})
export class AccessModule {}
