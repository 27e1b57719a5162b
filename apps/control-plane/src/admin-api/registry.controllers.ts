import { StoreRoutes } from '../store-api/store.routes.ts';
import { ModelController } from './model.controller.ts';
import { VersionController } from './version.controller.ts';

export const registryControllers = [ModelController, VersionController];
/** Besides `RegistryModule.forRoot(…)` imported by the same module. */
export const registryProviders = [StoreRoutes];
