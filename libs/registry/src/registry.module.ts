import { type DynamicModule, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Metrics } from '@perch/platform';
import { Transactions } from '@perch/platform/database';
import { ARTIFACT_STORE, type ArtifactStore } from './artifacts/artifact.store.ts';
import { openStore, type StoreOptions, s3SourceOf } from './artifacts/open.store.ts';
import { BlobEntity } from './blob.entity.ts';
import { BlobService } from './blob.service.ts';
import { BlobStore } from './blob.store.ts';
import { BlobRemovalService } from './blob-removal.service.ts';
import { BlobVerifyService } from './blob-verify.service.ts';
import { CompleteService } from './complete.service.ts';
import { DeletionService } from './deletion.service.ts';
import { GarbageService } from './garbage.service.ts';
import { GarbageStore } from './garbage.store.ts';
import { IMPORT_OPTIONS, type ImportOptions, ImportService, type ImportSettings, S3_SOURCE } from './import.service.ts';
import { InspectionService } from './inspection.service.ts';
import { ModelEntity } from './model.entity.ts';
import { ModelStore } from './model.store.ts';
import { ModuleEntity, ModuleFileEntity } from './module.entity.ts';
import { ModuleService } from './module.service.ts';
import { ModuleStore } from './module.store.ts';
import { ModuleUploadService } from './module-upload.service.ts';
import { RegistryService } from './registry.service.ts';
import { keepSigningKey } from './signing-key.store.ts';
import { StoreProbeService } from './store-probe.service.ts';
import { SweepService } from './sweep.service.ts';
import { UploadService } from './upload.service.ts';
import { noChecks, UPLOAD_CHECKS, type UploadChecks } from './upload-checks.ts';
import { VersionEntity } from './version.entity.ts';
import { VersionService } from './version.service.ts';
import { VersionStore } from './version.store.ts';
import { VersionChangeService } from './version-change.service.ts';
import { VersionFileEntity } from './version-file.entity.ts';
import { VersionNumberService } from './version-number.service.ts';

export interface RegistryOptions {
  store: StoreOptions;
  imports?: ImportOptions;
  /** What a version is judged by when its upload is completed; default: nothing. */
  checks?: UploadChecks;
}

/** Stores, and the services on top of them. */
const rules = [
  ModelStore,
  VersionStore,
  BlobStore,
  VersionChangeService,
  VersionNumberService,
  BlobService,
  BlobVerifyService,
  InspectionService,
  UploadService,
  CompleteService,
  VersionService,
  ImportService,
  BlobRemovalService,
  SweepService,
  GarbageStore,
  StoreProbeService,
  GarbageService,
  DeletionService,
  ModuleStore,
  ModuleUploadService,
  ModuleService,
  RegistryService,
];

/** Wants `DatabaseModule` (migrated), `LOGGER`, `Metrics` and `CHANGE_LOG` from global modules. */
@Module({})
export class RegistryModule {
  static forRoot(options: RegistryOptions): DynamicModule {
    const store = {
      provide: ARTIFACT_STORE,
      inject: [Transactions, Metrics],
      useFactory: (transactions: Transactions, metrics: Metrics) =>
        openStore(options.store, () => transactions.run(keepSigningKey), metrics),
    };
    const s3Source = {
      provide: S3_SOURCE,
      inject: [ARTIFACT_STORE],
      useFactory: (opened: ArtifactStore) => s3SourceOf(opened, options.store),
    };
    const imports = {
      provide: IMPORT_OPTIONS,
      inject: [Metrics],
      useFactory: (metrics: Metrics): ImportSettings => ({
        ...options.imports,
        outcomes: metrics.counter('perch_imports_total', 'Registrations from a URL by outcome.', ['outcome']),
      }),
    };
    return {
      module: RegistryModule,
      global: true, // endpoints and the internal API ask the one registry there is
      imports: [
        TypeOrmModule.forFeature([
          ModelEntity,
          VersionEntity,
          VersionFileEntity,
          BlobEntity,
          ModuleEntity,
          ModuleFileEntity,
        ]),
      ],
      providers: [store, s3Source, imports, { provide: UPLOAD_CHECKS, useValue: options.checks ?? noChecks }, ...rules],
      exports: [
        RegistryService,
        ModuleService,
        DeletionService,
        GarbageService,
        StoreProbeService,
        SweepService,
        ARTIFACT_STORE,
      ],
    };
  }
}
