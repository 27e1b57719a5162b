import type { Command } from 'commander';

export interface Noun {
  name: string;
  summary: string;
  group: string;
  hidden?: boolean;
  /** Adds the noun with all its verbs; called only when the command line names it. */
  load: () => Promise<{ define: (program: Command, noun: string) => void }>;
}

const machine = 'This machine:';
const serving = 'Models and endpoints:';
const running = 'The installation:';
const clearml = "ClearML's own words (its command lines work as they are):";

/** Every first word of a command line. */
export const nouns: readonly Noun[] = [
  { name: 'up', group: machine, summary: 'start all of Perch on this machine', load: () => import('./commands/up.ts') },
  { name: 'migrate', group: machine, summary: 'bring a database to this version', load: () => import('./commands/migrate.ts') },
  { name: 'doctor', group: machine, summary: 'look for what is wrong and say what to do', load: () => import('./commands/doctor.ts') },
  { name: 'login', group: machine, summary: 'save an installation and a key as a context', load: () => import('./commands/login.ts') },
  { name: 'context', group: machine, summary: 'installations this computer knows', load: () => import('./commands/context.ts') },
  { name: 'completion', group: machine, summary: 'completion for bash, zsh or fish', load: () => import('./commands/completion.ts') },
  { name: '__complete', group: machine, hidden: true, summary: 'what completion asks', load: () => import('./commands/complete.ts') },
  { name: 'model', group: serving, summary: 'upload, find, publish and archive versions', load: () => import('./commands/model.ts') },
  { name: 'endpoint', group: serving, summary: 'serve a model under a stable name', load: () => import('./commands/endpoint.ts') },
  { name: 'apply', group: serving, summary: 'make endpoints, splits and pipelines as files say', load: () => import('./commands/apply.ts') },
  { name: 'diff', group: serving, summary: 'show what apply would change', load: () => import('./commands/diff.ts') },
  { name: 'rollout', group: serving, summary: 'move traffic to a new version by evidence; watch, explain, steer', load: () => import('./commands/rollout.ts') },
  { name: 'split', group: serving, summary: 'one name over several endpoints or versions, by weight', load: () => import('./commands/split.ts') },
  { name: 'processing', group: serving, summary: 'own pre- and postprocessing in TypeScript: new, test, add', load: () => import('./commands/processing.ts') },
  { name: 'pipeline', group: serving, summary: 'endpoints and modules behind and beside one another, as one', load: () => import('./commands/pipeline.ts') },
  { name: 'fleet', group: running, summary: 'servers and routers', load: () => import('./commands/fleet.ts') },
  { name: 'key', group: running, summary: 'API keys and join keys', load: () => import('./commands/key.ts') },
  { name: 'webhook', group: running, summary: 'addresses that are told of versions and rollouts', load: () => import('./commands/webhook.ts') },
  { name: 'audit', group: running, summary: 'who changed what, and whether the log is whole', load: () => import('./commands/audit.ts') },
  { name: 'gc', group: running, summary: 'remove what nobody needs any more', load: () => import('./commands/gc.ts') },
  { name: 'create', group: clearml, summary: 'name this installation as a serving service', load: () => import('./commands/clearml.ts') },
  { name: 'list', group: clearml, summary: 'serving services, that is: contexts', load: () => import('./commands/clearml.ts') },
  { name: 'config', group: clearml, summary: 'settings of the serving service', load: () => import('./commands/clearml.ts') },
  { name: 'metrics', group: clearml, summary: 'which values of requests are counted', load: () => import('./commands/metrics.ts') },
]; // biome-ignore format: a table
