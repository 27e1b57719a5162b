#!/usr/bin/env node
import { runCli } from './program.ts';

// Said outright: a standard input that somebody keeps open must not keep a finished command alive.
process.exit(await runCli(process.argv.slice(2)));
