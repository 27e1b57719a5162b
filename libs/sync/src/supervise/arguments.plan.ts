import { basename } from 'node:path';

/** Where the agent looks for its model server: what the server's arguments must agree with. `host:port` each. */
export interface WantedServer {
  http: string;
  grpc: string;
  metrics: string | undefined;
  /** Absolute path. */
  repository: string;
}

export interface PlannedCommand {
  command: string;
  args: string[];
  /** Arguments that were added, as they stand in `args`. */
  filled: string[];
  /** What contradicts the settings, each in words that say what to do. */
  faults: string[];
  /** Null: not tritonserver, so nothing is known about its arguments. */
  backendDirectory: string | null;
  /** How long it may take over requests in flight when it is told to end. */
  exitTimeoutMs: number;
}

const defaultPorts = { 'http-port': 8000, 'grpc-port': 8001, 'metrics-port': 8002 } as const;
const defaultExitTimeoutSeconds = 30;
const portOf = (address: string) => Number(address.slice(address.lastIndexOf(':') + 1));
const isOff = (value: string | undefined) => value === 'false' || value === '0';
/** Without a final slash. */
const plain = (path: string) => path.replace(/(.)\/+$/, '$1');

/** Values of all long flags; both `--name=value` and `--name value` are read, as getopt does. */
function readFlags(args: readonly string[]): Map<string, string[]> {
  const flags = new Map<string, string[]>();
  for (let n = 0; n < args.length; n += 1) {
    const [, name, glued] = /^--([a-z0-9-]+)(?:=(.*))?$/s.exec(args[n]!) ?? [];
    if (name === undefined) continue;
    const next = args[n + 1];
    const value = glued ?? (next === undefined || next.startsWith('--') ? 'true' : next);
    flags.set(name, [...(flags.get(name) ?? []), value]);
  }
  return flags;
}

/** Where `tritonserver` stands in the words: it may be behind `numactl …` or `env …`. */
const serverAt = (words: readonly string[]) => words.findIndex((word) => /^tritonserver([._-]|$)/.test(basename(word)));

/**
 * The command to start: what it lacks is filled in, what contradicts the agent's settings is a fault. Another program
 * than tritonserver (a script) is started as it stands.
 */
export function planCommand(words: readonly string[], wanted: WantedServer): PlannedCommand {
  const [command = '', ...args] = words;
  const at = serverAt(words);
  const exitTimeoutMs = defaultExitTimeoutSeconds * 1_000;
  const unread: PlannedCommand = { command, args, filled: [], faults: [], backendDirectory: null, exitTimeoutMs };
  if (command === '') return { ...unread, faults: ['no command: write --supervise -- tritonserver …'] };
  if (at < 0) return unread;
  const flags = readFlags(words.slice(at + 1));
  const filled: string[] = [];
  const faults: string[] = [];
  for (const check of [checkRepository, checkControl, checkPorts, checkManners]) {
    const found = check(flags, wanted);
    filled.push(...found.filled);
    faults.push(...found.faults);
  }
  const seconds = Number(flags.get('exit-timeout-secs')?.at(-1) ?? defaultExitTimeoutSeconds);
  return {
    command,
    args: [...args, ...filled],
    filled,
    faults,
    backendDirectory: flags.get('backend-directory')?.at(-1) ?? '/opt/tritonserver/backends',
    exitTimeoutMs: (Number.isFinite(seconds) ? seconds : defaultExitTimeoutSeconds) * 1_000,
  };
}

type Check = (flags: Map<string, string[]>, wanted: WantedServer) => { filled: string[]; faults: string[] };

const checkRepository: Check = (flags, { repository }) => {
  const given = [...(flags.get('model-repository') ?? []), ...(flags.get('model-store') ?? [])];
  if (given.length === 0) return { filled: [`--model-repository=${repository}`], faults: [] };
  if (given.some((path) => plain(path) === plain(repository))) return { filled: [], faults: [] };
  const fault = `--model-repository=${given[0]} is not PERCH_TRITON_REPOSITORY (${repository}); give both the same folder`;
  return { filled: [], faults: [fault] };
};

const checkControl: Check = (flags) => {
  const mode = flags.get('model-control-mode')?.at(-1);
  const faults: string[] = [];
  if (mode !== undefined && mode !== 'explicit')
    faults.push(`--model-control-mode=${mode} does not let an agent load models; leave it out or write explicit`);
  if (flags.get('load-model')?.includes('*'))
    faults.push('--load-model=* loads past the agent, also what it holds back; leave it out');
  return { filled: mode === undefined ? ['--model-control-mode=explicit'] : [], faults };
};

const checkPorts: Check = (flags, wanted) => {
  const filled: string[] = [];
  const faults: string[] = [];
  const check = (flag: keyof typeof defaultPorts, setting: string, address: string) => {
    const given = flags.get(flag)?.at(-1);
    const port = portOf(address);
    if (given !== undefined && Number(given) !== port)
      faults.push(`--${flag}=${given} is not the port of ${setting} (${address}); give both the same port`);
    else if (given === undefined && port !== defaultPorts[flag]) filled.push(`--${flag}=${port}`);
  };
  check('http-port', 'PERCH_TRITON_HTTP', wanted.http);
  check('grpc-port', 'PERCH_TRITON_GRPC', wanted.grpc);
  if (wanted.metrics !== undefined) check('metrics-port', 'PERCH_TRITON_METRICS', wanted.metrics);
  for (const flag of ['allow-http', 'allow-grpc'])
    if (isOff(flags.get(flag)?.at(-1))) faults.push(`--${flag}=false shuts the agent out; leave it out`);
  if (wanted.metrics !== undefined && isOff(flags.get('allow-metrics')?.at(-1)))
    faults.push('--allow-metrics=false closes PERCH_TRITON_METRICS; leave one of the two out');
  return { filled, faults };
};

/** One model that loads or failed must not make the whole server unready, nor end it at its start. */
const checkManners: Check = (flags) => ({
  filled: ['strict-readiness', 'exit-on-error'].filter((flag) => !flags.has(flag)).map((flag) => `--${flag}=false`),
  faults: [],
});
