import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ResolvedEngine, resolvedEngine } from '@perch/contracts';

const root = join(import.meta.dirname, '../golden');

export interface GoldenConfig {
  name: string;
  engine: ResolvedEngine;
  server: { gpus: number };
  /** Where the text stands, and the text; empty when it is missing. */
  file: string;
  text: string;
  /** Files beside the version directory that the settings name, as text. */
  files: Record<string, string>;
  /** Why it is not loaded on a real server. */
  skip: string | undefined;
}

const textOf = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8') : '');

/** The settings of test/golden/config with the texts that servers get for them, in the order of their names. */
export const goldenConfigs = (): GoldenConfig[] =>
  readdirSync(join(root, 'config'))
    .sort()
    .map((name) => {
      const file = join(root, 'config', name, 'config.pbtxt');
      const { engine, server, files, skip } = JSON.parse(
        readFileSync(join(root, 'config', name, 'engine.json'), 'utf8'),
      );
      return { name, engine: resolvedEngine.parse(engine), server, file, text: textOf(file), files: files ?? {}, skip };
    });

/** Configurations as people write them, by the name of the file. */
export const realWorldConfigs = (): { name: string; text: string }[] =>
  readdirSync(join(root, 'real-world'))
    .filter((name) => name.endsWith('.pbtxt'))
    .sort()
    .map((name) => ({ name, text: textOf(join(root, 'real-world', name)) }));
