import type { Command } from 'commander';
import { addVerb } from '../verb.ts';

/** `perch doctor` */
export function define(program: Command): void {
  addVerb(program, {
    usage: 'doctor',
    summary: 'look for what is wrong, and say what to do about each finding; exits 1 when something is',
    examples: ['perch doctor', 'perch doctor -o json'],
    load: () => import('./doctor-run.ts'),
  });
}
