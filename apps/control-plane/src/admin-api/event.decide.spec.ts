import type { Actor, Role } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { maySee } from './event.decide.ts';

const actor = (role: Role, projects: string[] = [], endpoints: string[] = []): Actor => ({
  id: 'pk_1',
  name: 'a',
  role,
  projects,
  endpoints,
});

describe('who may see an event', () => {
  it.each([
    ['version.publish', 'nlp/minilm/3', actor('viewer', ['nlp']), true],
    ['version.publish', 'nlp/minilm/3', actor('viewer', ['vision']), false],
    ['rollout.step', 'text/minilm', actor('viewer', [], ['text/*']), true],
    ['rollout.step', 'text/minilm', actor('viewer', [], ['img/*']), false],
    ['quarantine.add', 'text/minilm', actor('viewer', [], ['img/*']), false],
    ['split.update', 'text/minilm', actor('viewer', [], ['img/*']), false],
    ['deployment.ready', 'text/minilm', actor('viewer'), true],
    ['webhook.create', 'ops', actor('operator'), false],
    ['webhook.create', 'ops', actor('admin'), true],
    ['key.create', 'pk_2', actor('operator'), false],
    ['server.drain', 'gpu-1', actor('viewer', ['nlp'], ['text/*']), true],
  ] as const)('%s of %s', (type, subject, by, seen) => expect(maySee(by, { type, subject })).toBe(seen));
});
