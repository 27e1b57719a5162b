import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readSpecs } from './spec-file.source.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'perch spec '));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const file = async (name: string, text: string) => {
  await writeFile(join(folder, name), text);
  return join(folder, name);
};

describe('specification files', () => {
  it('reads several documents of YAML, leaving empty ones out', async () => {
    const path = await file('a.yaml', '---\nname: a\nmodel: {project: p, name: m}\n---\n---\nname: b\n');
    expect((await readSpecs(path)).map(({ spec }) => spec['name'])).toEqual(['a', 'b']);
  });
  it('reads JSON, one object or a list', async () => {
    expect((await readSpecs(await file('a.json', '{"name":"a"}'))).length).toBe(1);
    expect((await readSpecs(await file('b.json', '[{"name":"a"},{"name":"b"}]'))).length).toBe(2);
  });
  it('puts the text of a config file in its place, found beside the file', async () => {
    await file('extra.pbtxt', 'parameters {}');
    const [found] = await readSpecs(await file('c.yaml', 'name: c\nengine: {config: ./extra.pbtxt}\n'));
    expect(found?.spec['engine']).toEqual({ config: 'parameters {}' });
    const [text] = await readSpecs(await file('d.yaml', 'name: d\nengine:\n  config: |\n    max_batch_size: 8\n'));
    expect(text?.spec['engine']).toEqual({ config: 'max_batch_size: 8\n' });
  });
  it.each([
    ['e.yaml', 'name: [', /e\.yaml/],
    ['f.yaml', 'just words', /f\.yaml: wants an object/],
    ['g.yaml', '', /g\.yaml: holds no document/],
    ['h.yaml', 'a: 1\na: 2\n', /h\.yaml: .*unique/],
    ['i.yaml', 'name: i\nengine: {config: missing.pbtxt}', /cannot read the config file/],
    ['j.yaml', 'name: a\n---\nname: [', /j\.yaml, document 2/],
  ])('%s is refused, naming the file', async (name, text, words) => {
    await expect(readSpecs(await file(name, text))).rejects.toThrow(words);
  });
  it('says when there is no such file', async () => {
    await expect(readSpecs(join(folder, 'none.yaml'))).rejects.toThrow(/none\.yaml: no such file/);
  });
});
