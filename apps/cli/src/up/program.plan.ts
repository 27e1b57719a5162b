import type { Places, UpOptions } from './up.config.ts';

export interface Secrets {
  adminKey: string;
  joinServer: string;
  joinRouter: string;
}
/** `host:port` of the model server that the agent looks after. */
export interface TritonPlace {
  http: string;
  grpc: string;
  metrics: string;
  repository: string;
}
export interface Ports {
  control: number;
  router: number;
  agent: number;
  engineHttp: number;
  engineGrpc: number;
  engineMetrics: number;
}

type Env = Record<string, string>;
const host = '127.0.0.1';
const at = (port: number) => `${host}:${port}`;

export const controlUrl = (ports: Ports): string => `http://${at(ports.control)}`;
export const routerUrl = (ports: Ports): string => `http://${at(ports.router)}`;

/** Settings of each program; what the person's environment says besides stays. */
export const controlPlaneEnv = (
  options: UpOptions,
  places: Places,
  ports: Ports,
  secrets: Secrets,
  databaseUrl: string,
): Env => ({
  PERCH_LISTEN: at(ports.control),
  PERCH_PUBLIC_URL: controlUrl(ports),
  PERCH_DATABASE_URL: databaseUrl,
  PERCH_BOOTSTRAP_ADMIN_KEY: secrets.adminKey,
  PERCH_BOOTSTRAP_JOIN_KEY_SERVER: secrets.joinServer,
  PERCH_BOOTSTRAP_JOIN_KEY_ROUTER: secrets.joinRouter,
  ...(options.store ?? { PERCH_STORE_URL: fileUrl(places.artifacts) }),
});

export const engineEnv = (places: Places, ports: Ports): Env => ({
  PERCH_ENGINE_HTTP: at(ports.engineHttp),
  PERCH_ENGINE_GRPC: at(ports.engineGrpc),
  PERCH_ENGINE_METRICS: at(ports.engineMetrics),
  PERCH_ENGINE_REPOSITORY: places.engine,
});

export const tritonPlace = (places: Places, ports: Ports): TritonPlace => ({
  http: at(ports.engineHttp),
  grpc: at(ports.engineGrpc),
  metrics: at(ports.engineMetrics),
  repository: places.engine,
});

export const agentEnv = (places: Places, ports: Ports, secrets: Secrets): Env => {
  const triton = tritonPlace(places, ports);
  return {
    PERCH_LISTEN: at(ports.agent),
    PERCH_CONTROL_URL: controlUrl(ports),
    PERCH_JOIN_KEY: secrets.joinServer,
    PERCH_DATA_DIR: places.agent,
    PERCH_TRITON_HTTP: triton.http,
    PERCH_TRITON_GRPC: triton.grpc,
    PERCH_TRITON_METRICS: triton.metrics,
    PERCH_TRITON_REPOSITORY: triton.repository,
    PERCH_ADVERTISE_HTTP: triton.http,
    PERCH_ADVERTISE_GRPC: triton.grpc,
    PERCH_NAME: 'local',
  };
};

export const routerEnv = (places: Places, ports: Ports, secrets: Secrets): Env => ({
  PERCH_LISTEN: at(ports.router),
  PERCH_CONTROL_URL: controlUrl(ports),
  PERCH_JOIN_KEY: secrets.joinRouter,
  PERCH_DATA_DIR: places.router,
  PERCH_NAME: 'local',
});

/** A folder as a URL; blanks and other odd characters in the path survive. */
export const fileUrl = (folder: string): string => `file://${folder.split('/').map(encodeURIComponent).join('/')}`;
