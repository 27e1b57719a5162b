import { describe, expect, it } from 'vitest';
import { filesOf } from './call.fake.ts';
import { moduleFiles } from './module-files.ts';

const files = moduleFiles(
  filesOf({
    'labels.txt': 'cat\r\ndog\n\nbird\n',
    'list.json': '["cat","dog"]',
    'config.json': '{"id2label":{"1":"dog","0":"cat"}}',
    'gap.json': '{"0":"cat","2":"dog"}',
    'broken.json': '{',
  }),
);

describe('files of a module', () => {
  it.each([
    [undefined, ['cat', 'dog', '', 'bird']],
    ['list.json', ['cat', 'dog']],
    ['config.json', ['cat', 'dog']],
  ])('reads the labels of %s', async (path, labels) => {
    expect(await files.labels(path)).toEqual(labels);
  });

  it.each([
    ['gap.json', 'file gap.json holds no labels'],
    ['broken.json', 'file broken.json is not valid JSON'],
    ['none.json', 'no file none.json'],
  ])('says what is wrong with %s', async (path, message) => {
    await expect(files.labels(path)).rejects.toThrow(message);
  });

  it('reads text and JSON, and knows what there is', async () => {
    expect(await files.text('list.json')).toBe('["cat","dog"]');
    expect(await files.json('list.json')).toEqual(['cat', 'dog']);
    expect([files.has('list.json'), files.has('none')]).toEqual([true, false]);
  });
});
