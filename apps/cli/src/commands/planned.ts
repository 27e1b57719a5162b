import type { Command } from 'commander';
import { addPlanned } from '../verb.ts';

const planned: Record<string, string> = {};

/** A noun that is understood and not built yet. */
export function define(program: Command, noun: string): void {
  addPlanned(program, noun, planned[noun] as string);
}
