import type { Provider } from '@nestjs/common';
import { LOGGER, type Logger } from '@perch/platform';
import {
  FactsSource,
  findServer,
  memoryLimitBytes,
  type PlannedCommand,
  readGpuKinds,
  readGpus,
  Supervisor,
  UsageSource,
} from '@perch/sync';
import { type AgentConfig, CONFIG, serverEnvironment } from './agent.config.ts';
import { SUPERVISOR } from './server.source.ts';
import { OutsideConnections } from './sync-setup.ts';

/** Injection token of the server's command; null without --supervise. */
export const SERVER_COMMAND = Symbol('server command');

const defaultGrpcPort = 8001;
/** Beyond the time that the server gives its requests in flight. */
const exitGraceMs = 5_000;

/** From SIGTERM to SIGKILL of a supervised server. */
export const exitTimeoutMs = (config: AgentConfig, command: PlannedCommand): number =>
  config.PERCH_EXIT_TIMEOUT_MS ?? command.exitTimeoutMs + exitGraceMs;

function makeSupervisor(config: AgentConfig, logger: Logger, command: PlannedCommand | null): Supervisor | null {
  if (!command) return null;
  return new Supervisor(
    // As it is, beside our own lines on the other stream.
    { logger, onConsole: (line) => void process.stderr.write(`${line}\n`) },
    {
      command: command.command,
      args: command.args,
      env: serverEnvironment(),
      folder: config.PERCH_DATA_DIR,
      restart: {
        firstMs: config.PERCH_RESTART_FIRST_MS,
        maxMs: config.PERCH_RESTART_MAX_MS,
        resetMs: config.PERCH_RESTART_RESET_MS,
      },
      exitTimeoutMs: exitTimeoutMs(config, command),
    },
  );
}

/** Which process Triton is: our child, the one that the settings name, or one that listens where they say. */
const pidSource = (config: AgentConfig, supervisor: Supervisor | null) => () => {
  if (supervisor) return supervisor.pid;
  const { PERCH_TRITON_PID, PERCH_TRITON_GRPC: grpc } = config;
  return PERCH_TRITON_PID ?? findServer(Number(grpc.slice(grpc.lastIndexOf(':') + 1)), defaultGrpcPort);
};

const gpuSource = (config: AgentConfig, outside: OutsideConnections) => async () => {
  const { PERCH_TRITON_METRICS: metrics } = config;
  return metrics === undefined ? [] : readGpus(metrics, outside.dispatcher);
};

function makeFacts(
  config: AgentConfig,
  outside: OutsideConnections,
  supervisor: Supervisor | null,
  command: PlannedCommand | null,
): FactsSource {
  const pid = pidSource(config, supervisor);
  const ramBytes = () => {
    const known = pid();
    return known === undefined ? null : memoryLimitBytes(known);
  };
  return new FactsSource(
    { gpus: gpuSource(config, outside), gpuKinds: readGpuKinds, ramBytes, now: Date.now },
    {
      host: config.PERCH_HOST,
      supervised: command !== null,
      backends: config.PERCH_TRITON_BACKENDS,
      backendDirectory: config.PERCH_TRITON_BACKEND_DIR ?? command?.backendDirectory ?? undefined,
      tensorrt: config.PERCH_TENSORRT_VERSION,
      onnxruntime: config.PERCH_ONNXRUNTIME_VERSION,
    },
  );
}

/** Triton's process: its parent where we are that, and what can be seen of it from outside. */
export const superviseProviders: Provider[] = [
  { provide: SUPERVISOR, inject: [CONFIG, LOGGER, SERVER_COMMAND], useFactory: makeSupervisor },
  { provide: FactsSource, inject: [CONFIG, OutsideConnections, SUPERVISOR, SERVER_COMMAND], useFactory: makeFacts },
  {
    provide: UsageSource,
    inject: [CONFIG, OutsideConnections, SUPERVISOR],
    useFactory: (config: AgentConfig, outside: OutsideConnections, supervisor: Supervisor | null) =>
      new UsageSource({ pid: pidSource(config, supervisor), gpus: gpuSource(config, outside), now: Date.now }),
  },
];
