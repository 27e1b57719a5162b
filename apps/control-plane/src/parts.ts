import type { ModuleMetadata, Type } from '@nestjs/common';
import { AuditController } from './admin-api/audit.controller.ts';
import { EventController } from './admin-api/event.controller.ts';
import { JoinKeyController, KeyController } from './admin-api/key.controller.ts';

/** Every controller of the program; those below /api/v1 make up openapi.json. */
export const controllers: Type[] = [AuditController, EventController, JoinKeyController, KeyController];

/** Modules of the libs, and what the program binds to their ports. */
export const partModules: NonNullable<ModuleMetadata['imports']> = [];
