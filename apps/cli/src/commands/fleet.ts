import type { Command } from 'commander';
import { addVerb, many } from '../verb.ts';

/** `perch fleet …` */
export function define(program: Command): void {
  const fleet = program.command('fleet').description('Servers (one Triton each) and routers.');
  const add = (name: string, usage: string, summary: string, example: string) =>
    addVerb(fleet, {
      usage,
      summary,
      examples: [example],
      load: async () => {
        const found = await import('./fleet-run.ts');
        return { run: found.runs[name as keyof typeof found.runs] };
      },
    });
  add('servers', 'servers', 'all servers, what they hold and how they are', 'perch fleet servers');
  add('routers', 'routers', 'all routers and the table each one serves from', 'perch fleet routers');
  add(
    'confirm',
    'confirm',
    'after the database was restored: what its documents remove is meant',
    'perch fleet confirm',
  );
  add(
    'forget',
    'forget-router <id>',
    'stop waiting for a router that is gone for good',
    'perch fleet forget-router 0f3c…',
  );
  add('pools', 'pools', 'pools with their servers and their room', 'perch fleet pools');
  defineServer(fleet);
  defineExternal(fleet);
}

/** Tritons without an agent. */
function defineExternal(fleet: Command): void {
  addVerb(fleet, {
    usage: 'register <server>',
    summary: 'add a Triton without an agent: serve what it holds, or load small models into it',
    examples: [
      'perch fleet register gpu-box --url http://10.0.0.7:8000 --grpc 10.0.0.7:8001 --wait',
      'perch fleet register edge-1 --url http://edge-1:8000 --grpc edge-1:8001 --pool edge --mode explicit --header admin-key=@key.txt',
    ],
    waits: '30s',
    options: (command) =>
      void command
        .requiredOption('--url <url>', 'where routers reach it: http://host:port')
        .requiredOption('--grpc <address>', 'where it is looked after: host:port')
        .option('--pool <name>', 'default: default')
        .option(
          '--mode <mode>',
          'adopt: what it holds is served, not managed (default); explicit: models up to 64 MiB are loaded as well',
        )
        .option('--label <key=value>', 'may be repeated', many)
        .option(
          '--header <key=value>',
          'what its restricted protocols want; key=@file reads it; may be repeated',
          many,
        ),
    load: async () => ({ run: (await import('./fleet-register.ts')).register }),
  });
  addVerb(fleet, {
    usage: 'unregister <server>',
    summary: 'forget a Triton without an agent, once nothing is served from it',
    examples: ['perch fleet drain gpu-box --wait && perch fleet unregister gpu-box'],
    options: (command) =>
      void command.option('--force', 'it is gone for good: what we loaded into it cannot be unloaded'),
    load: async () => ({ run: (await import('./fleet-register.ts')).unregister }),
  });
}

/** One server, or the servers of one pool after one another. */
function defineServer(fleet: Command): void {
  addVerb(fleet.command('server').description('One server.'), {
    usage: 'show <server>',
    summary: 'one server: each model as it should be and as it is, and what is waited for',
    examples: ['perch fleet server show gpu-1'],
    load: async () => ({ run: (await import('./fleet-server.ts')).show }),
  });
  addVerb(fleet, {
    usage: 'drain <server>',
    summary: 'take a server out of service: what it serves is ready elsewhere first',
    examples: ['perch fleet drain gpu-1 --wait', 'perch fleet drain gpu-1 --reason "new driver" --force'],
    waits: '5m',
    options: (command) =>
      void command
        .option('--reason <text>', 'why, for the others')
        .option('--force', 'do not wait until its deployments are ready elsewhere'),
    load: async () => ({ run: (await import('./fleet-drain.ts')).drain }),
  });
  addVerb(fleet, {
    usage: 'undrain <server>',
    summary: 'put a server back in service',
    examples: ['perch fleet undrain gpu-1'],
    options: (command) => void command.option('--reason <text>', 'why, for the others'),
    load: async () => ({ run: (await import('./fleet-drain.ts')).undrain }),
  });
  addVerb(fleet, {
    usage: 'roll <pool>',
    summary: 'restart the servers of a pool one after another without a lost request',
    examples: [
      `perch fleet roll default --exec 'ssh "$PERCH_SERVER_NAME" sudo systemctl restart triton'`,
      'perch fleet roll gpu --max-unavailable 2 --wait 30m',
    ],
    options: (command) =>
      void command
        .option('--exec <command>', 'run for each drained server, with PERCH_SERVER_NAME, _ID and _HTTP; else somebody restarts it') // biome-ignore format: one row reads better
        .option('--max-unavailable <servers>', 'so many out of service at once', '1')
        .option('--wait <time>', 'for each step of each server', '10m')
        .option('--reason <text>', 'why, for the others'),
    load: async () => ({ run: (await import('./fleet-roll.ts')).roll }),
  });
}
