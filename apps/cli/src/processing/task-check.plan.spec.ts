import { jsonSchemaOf, tasks } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { parseFixture } from './fixture.plan.ts';
import { skeletonFiles } from './skeleton.plan.ts';
import { taskFaults } from './task-check.plan.ts';
import { typeText } from './task-text.plan.ts';

describe('tasks', () => {
  it.each([
    ['a task of one’s own', 'lengths', { request: 1, reply: 2 }, []],
    ['no task', undefined, { request: 1 }, []],
    ['what it wants', 'text-embedding', { request: { text: 'a' }, reply: { embedding: [1] } }, []],
    ['a refusal has no reply', 'text-embedding', { request: { text: 'a' } }, []],
  ])('%s', (_name, task, shown, words) => expect(taskFaults(task, shown)).toEqual(words));

  it('say what is not as others of the task have it', () => {
    const words = taskFaults('text-embedding', { request: { text: 'a' }, reply: { lengths: [1] } });
    expect(words).toEqual([expect.stringContaining('note: the reply is not that of the task text-embedding')]);
  });

  it('are shown as TypeScript writes types', () => {
    expect(
      typeText({
        type: 'object',
        properties: {
          a: { type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'integer' }] } },
          b: { enum: ['x', 1] },
        },
        required: ['a'],
      }),
    ).toBe('{ a: (string | number)[]; b?: "x" | 1 }');
    expect(typeText({ type: 'object', additionalProperties: { type: 'number' } })).toBe('{ [name: string]: number }');
    expect(typeText({ $ref: '#/$defs/A', $defs: { A: { type: 'boolean' } } })).toBe('boolean');
    for (const { request, reply } of Object.values(tasks))
      for (const schema of [request, reply]) expect(typeText(jsonSchemaOf(schema) as never)).not.toBe('unknown');
  });

  it.each([undefined, 'of-my-own', ...Object.keys(tasks)])(
    'a new module of %s names it and has a good fixture',
    (task) => {
      const files = new Map(skeletonFiles('mine', task).map(({ path, text }) => [path, text]));
      expect([...files.keys()]).toEqual(['module.ts', 'fixtures/first.json', 'README.md']);
      expect(files.get('module.ts')!.includes(`task: '${task}',`)).toBe(task !== undefined);
      expect(parseFixture(files.get('fixtures/first.json')!, 'fixtures/first.json').wanted).toBeDefined();
    },
  );
});
