import { numbered, type Places, type UpOptions } from './up.config.ts';

export interface Secrets {
  adminKey: string;
  joinServer: string;
  joinRouter: string;
}
/** Ports of one model server and of the agent beside it. */
export interface ServerPorts {
  agent: number;
  http: number;
  grpc: number;
  metrics: number;
}
export interface Ports {
  control: number;
  router: number;
  servers: ServerPorts[];
}
/** One model server: `host:port` of each of its listeners. */
export interface ServerPlace {
  name: string;
  agent: string;
  http: string;
  grpc: string;
  metrics: string;
  repository: string;
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

export const serverPlace = (places: Places, ports: Ports, place: number): ServerPlace => {
  const { agent, http, grpc, metrics } = ports.servers[place]!;
  return {
    name: numbered('local', place),
    agent: at(agent),
    http: at(http),
    grpc: at(grpc),
    metrics: at(metrics),
    repository: places.repository(place),
  };
};

export const engineEnv = ({ http, grpc, metrics, repository }: ServerPlace): Env => ({
  PERCH_ENGINE_HTTP: http,
  PERCH_ENGINE_GRPC: grpc,
  PERCH_ENGINE_METRICS: metrics,
  PERCH_ENGINE_REPOSITORY: repository,
});

export const agentEnv = (places: Places, ports: Ports, secrets: Secrets, place: number): Env => {
  const triton = serverPlace(places, ports, place);
  return {
    PERCH_LISTEN: triton.agent,
    PERCH_CONTROL_URL: controlUrl(ports),
    PERCH_JOIN_KEY: secrets.joinServer,
    PERCH_DATA_DIR: places.agent(place),
    PERCH_TRITON_HTTP: triton.http,
    PERCH_TRITON_GRPC: triton.grpc,
    PERCH_TRITON_METRICS: triton.metrics,
    PERCH_TRITON_REPOSITORY: triton.repository,
    PERCH_ADVERTISE_HTTP: triton.http,
    PERCH_ADVERTISE_GRPC: triton.grpc,
    PERCH_NAME: triton.name,
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
