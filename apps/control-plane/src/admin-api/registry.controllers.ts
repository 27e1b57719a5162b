import type { DynamicModule } from '@nestjs/common';
import { RegistryModule } from '@perch/registry';
import type { ControlPlaneConfig } from '../control-plane.config.ts';
import { UploadSweepLoop } from '../loops/upload-sweep.loop.ts';
import { StorePath } from '../store-api/store.path.ts';
import { uploadChecks } from '../upload-checks.ts';
import { ConfigController } from './config.controller.ts';
import { ModelController } from './model.controller.ts';
import { ModuleController } from './module.controller.ts';
import { VersionController } from './version.controller.ts';

export const registryControllers = [ConfigController, ModelController, ModuleController, VersionController];
/** For the module that imports `registryModule(…)`. */
export const registryProviders = [StorePath, UploadSweepLoop];

/** `publicUrl` is asked when a URL is signed, so it may be the address that is known after listening. */
export const registryModule = (config: ControlPlaneConfig, publicUrl: () => string): DynamicModule =>
  RegistryModule.forRoot({
    imports: { reach: config.PERCH_IMPORT_REACH },
    checks: uploadChecks,
    store: {
      url: config.PERCH_STORE_URL,
      publicUrl,
      signingKey: config.PERCH_SIGNING_KEY,
      s3: {
        endpoint: config.PERCH_S3_ENDPOINT,
        region: config.PERCH_S3_REGION,
        accessKeyId: config.PERCH_S3_ACCESS_KEY_ID,
        secretAccessKey: config.PERCH_S3_SECRET_ACCESS_KEY,
        forcePathStyle: config.PERCH_S3_FORCE_PATH_STYLE,
      },
    },
  });
