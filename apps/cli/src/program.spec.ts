import type { Command } from 'commander';
import { describe, expect, it, vi } from 'vitest';
import { nouns } from './command.table.ts';
import { candidates } from './completion.source.ts';
import { buildProgram, nounOf, runCli, settleWait } from './program.ts';

const hidden = (command: Command) => (command as Command & { _hidden?: boolean })._hidden === true;
const leaves = (command: Command): Command[] =>
  command.commands.length === 0 ? [command] : command.commands.flatMap(leaves);

/** Runs a line; what it wrote, and its exit code. */
async function run(...args: string[]) {
  const written = { out: '', err: '' };
  const spies = [
    vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
      written.out += text;
      return true;
    }),
    vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
      written.err += text;
      return true;
    }),
  ];
  try {
    return { code: await runCli(args), ...written };
  } finally {
    for (const spy of spies) spy.mockRestore();
    process.exitCode = 0;
  }
}

describe('the command line', () => {
  it.each([
    [['model', 'list'], 'model'],
    [['--id', 'abc', 'model', 'add'], 'model'],
    [['--id=abc', 'model'], 'model'],
    [['-o', 'json', '--debug', '--yes', 'list'], 'list'],
    [['help', 'model'], 'model'],
    [['--help'], undefined],
    [[], undefined],
  ])('%j is about %s', (args, noun) => expect(nounOf(args)).toBe(noun));

  it.each([
    [
      ['x', '--wait'],
      ['x', '--wait'],
    ],
    [
      ['x', '--wait', '30s'],
      ['x', '--wait', '30s'],
    ],
    [
      ['x', '--wait=30s'],
      ['x', '--wait=30s'],
    ],
    [
      ['--wait', 'text/minilm'],
      ['--wait=', 'text/minilm'],
    ],
    [
      ['--wait', '--json'],
      ['--wait', '--json'],
    ],
  ])('%j reads %j', (args, settled) => expect(settleWait(args)).toEqual(settled));

  it('shows everything at once for --help, loading nothing', async () => {
    const { code, out } = await run('--help');
    expect(code).toBe(0);
    for (const noun of nouns) expect(out.includes(`  ${noun.name} `)).toBe(!noun.hidden);
    expect(out).toContain('Exit codes: 0 done');
  });
  it('says which command there is not, and which may be meant', async () => {
    expect(await run('modle')).toMatchObject({ code: 2, err: expect.stringContaining('did you mean model') });
    expect(await run('zzz')).toMatchObject({ code: 2, err: expect.stringContaining('perch --help') });
  });
  it.each([
    ['model', 'nonsense'],
    ['model', 'list', '--nonsense'],
    ['endpoint', 'add'],
    ['split', 'add'],
    ['model', 'canary', '--endpoint', 'e', '--weights'],
    ['apply'],
    ['--nonsense'],
  ])('%s %s is wrong use', async (...args) => expect((await run(...args.filter(Boolean))).code).toBe(2));
  it('refuses an unknown form of output before it does anything', async () => {
    expect(await run('context', 'list', '-o', 'xml')).toMatchObject({
      code: 2,
      err: expect.stringContaining('--output: wants table, json, yaml'),
    });
  });
});

describe('every verb', async () => {
  const program = await buildProgram(() => true);
  const verbs = leaves(program).filter(
    (command) => !hidden(command) && !/not available yet/.test(command.description()) && command.name() !== 'help',
  );
  it('there are some', () => expect(verbs.length).toBeGreaterThan(40));
  it.each(verbs.map((verb) => [`${verb.parent?.name()} ${verb.name()}`, verb] as const))(
    '%s has examples and speaks JSON and YAML',
    (_name, verb) => {
      let help = '';
      verb
        .configureOutput({
          writeOut: (text) => {
            help += text;
          },
        })
        .outputHelp();
      expect(help).toMatch(/Examples:\n {2}\$ perch /);
      expect(help).toContain('--output <format>');
    },
  );
});

describe('completion', () => {
  it.each([
    [[''], 'endpoint'],
    [['mod'], 'model'],
    [['model', 'up'], 'upload'],
    [['model', 'upload', '--pub'], '--publish'],
    [['-o', 'js'], 'json'],
    [['completion', '--'], '--help'],
  ])('%j offers %s', async (words, word) => expect(await candidates(words)).toContain(word));
  it('offers nothing that is hidden', async () => expect(await candidates([''])).not.toContain('__complete'));
});
