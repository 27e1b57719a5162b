import type { Command } from 'commander';
import { addPlanned } from '../verb.ts';

const planned: Record<string, string> = {
  processing: 'register, test and list your own pre- and postprocessing modules in TypeScript',
  pipeline: 'run several endpoints behind and beside one another as one',
  metrics: 'name values of requests and replies to be counted as metrics of an endpoint',
};

/** A noun that is understood and not built yet. */
export function define(program: Command, noun: string): void {
  addPlanned(program, noun, planned[noun] as string);
}
