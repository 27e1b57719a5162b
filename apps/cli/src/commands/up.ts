import { type Command, Option } from 'commander';
import { addVerb } from '../verb.ts';

/** `perch up` */
export function define(program: Command): void {
  addVerb(program, {
    usage: 'up',
    summary: 'start all of Perch on this machine: database, control plane, engine, agent, router',
    examples: [
      'perch up',
      'perch up --data ./perch-data --port 8080 --router-port 8090',
      'perch up --servers 3                                # a fleet: three model servers, each with its agent',
      'perch up --triton                                   # a real Triton instead of the embedded engine',
      'perch up --postgres postgres://me:secret@db/perch --s3 s3://bucket/prefix    # PERCH_S3_… give endpoint and keys',
    ],
    options: (command) =>
      command
        .option('--data <folder>', 'where everything is kept (PERCH_UP_DIR)')
        .option('--port <port>', 'of the control plane; 0: any free one for everything')
        .option('--router-port <port>')
        .option('--servers <count>', 'model servers to start, 1 to 16 (1)')
        .option('--triton', 'serve on the real Triton that is installed here')
        .option('--postgres <url>', 'an own database instead of the embedded one')
        .option('--s3 <url>', 's3://bucket/prefix, or http://key:secret@host:port/bucket/prefix')
        .option('--context-name <name>', 'the context to write (local)')
        .option('--json', 'say what runs as one JSON line')
        .addOption(new Option('--stop-with-stdin', 'stop when the standard input closes').hideHelp()),
    load: () => import('./up-run.ts'),
  });
}
