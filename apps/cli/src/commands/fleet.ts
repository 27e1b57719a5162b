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
  addPlanned(fleet, 'server', 'show one server with all its models');
  addPlanned(fleet, 'drain', 'move everything off a server');
  addPlanned(fleet, 'undrain', 'let a drained server take models again');
  addPlanned(fleet, 'roll', 'restart the servers of a pool one after another without a lost request');
  addPlanned(fleet, 'pools', 'list pools with their room');
  addPlanned(fleet, 'register', 'add a server that runs without an agent');
}
