import type { Command } from 'commander';
import { addPlanned, addVerb } from '../verb.ts';

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
  addPlanned(fleet, 'register', 'add a server that runs without an agent');
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
