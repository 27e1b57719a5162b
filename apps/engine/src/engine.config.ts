import { availableParallelism } from 'node:os';
import { commonSettings, type Environment, listenAddress, readConfig } from '@perch/platform';
import { z } from 'zod';

const settings = z.object({
  ...commonSettings,
  PERCH_ENGINE_HTTP: listenAddress.prefault('127.0.0.1:8000'),
  PERCH_ENGINE_GRPC: listenAddress.prefault('127.0.0.1:8001'),
  PERCH_ENGINE_METRICS: listenAddress.prefault('127.0.0.1:8002'),
  PERCH_ENGINE_REPOSITORY: z.string({ error: 'wants the folder of the model repository' }).min(1),
  PERCH_ENGINE_ID: z.string().min(1).max(128).default('triton'),
  PERCH_ENGINE_THREADS: z.coerce
    .number()
    .int()
    .min(1)
    .max(256)
    .default(Math.max(1, availableParallelism() >> 1)),
});

export type EngineConfig = z.output<typeof settings>;

export const readEngineConfig = (env?: Environment): EngineConfig => readConfig(settings, env);
