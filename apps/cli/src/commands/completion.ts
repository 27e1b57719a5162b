import type { Command } from 'commander';
import { addVerb } from '../verb.ts';

/** `perch completion bash|zsh|fish` */
export function define(program: Command): void {
  addVerb(program, {
    usage: 'completion <shell>',
    summary: 'a script that completes commands, options and contexts: bash, zsh or fish',
    examples: [
      'perch completion bash > ~/.local/share/bash-completion/completions/perch',
      'perch completion zsh > ~/.zfunc/_perch',
      'perch completion fish > ~/.config/fish/completions/perch.fish',
    ],
    load: () => import('./completion-run.ts'),
  });
}
