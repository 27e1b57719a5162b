import type { Actor } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { maySee } from './event.decide.ts';
import {
  expectedGeneration,
  pageOf,
  readCursor,
  readNumberCursor,
  readTextCursor,
  requireEndpoint,
  requireProject,
  writeCursor,
} from './http.ts';
import { idempotencyKeyOf } from './idempotency.interceptor.ts';
import { bearerOf } from './key.guard.ts';
import { atLeast, inScopes } from './scope.decide.ts';

const actor = (wish: Partial<Actor>): Actor => ({
  id: 'pk_1',
  name: 'ci',
  role: 'viewer',
  projects: [],
  endpoints: [],
  ...wish,
});

describe('roles and scopes', () => {
  it.each([
    ['viewer', 'viewer', true],
    ['admin', 'viewer', true],
    ['publisher', 'operator', false],
    ['inference', 'viewer', false],
  ] as const)('%s is at least %s: %s', (has, wants, yes) => expect(atLeast(has, wants)).toBe(yes));

  it.each([
    [[], 'anything', true],
    [['nlp'], 'nlp', true],
    [['nlp'], 'nlp2', false],
    [['text/*'], 'text/minilm', true],
    [['text/*'], 'text', false],
    [['text/*'], 'textual/x', false],
    [['a', 'b/*'], 'b/c/d', true],
  ])('scopes %j hold %s: %s', (scopes, name, yes) => expect(inScopes(scopes, name)).toBe(yes));

  it('what lies outside is named', () => {
    expect(() => requireProject(actor({ projects: ['nlp'] }), 'cv')).toThrow('key ci is not scoped to project cv');
    expect(() => requireEndpoint(actor({ endpoints: ['a/*'] }), 'b')).toThrow('key ci is not scoped to endpoint b');
  });
});

describe('who may see an event', () => {
  it.each([
    ['version.publish', 'nlp/minilm/3', { projects: ['nlp'] }, true],
    ['version.publish', 'cv/resnet/3', { projects: ['nlp'] }, false],
    ['endpoint.update', 'text/minilm', { endpoints: ['text/*'] }, true],
    ['deployment.ready', 'image/x', { endpoints: ['text/*'] }, false],
    ['key.create', 'pk_1', {}, false],
    ['key.create', 'pk_1', { role: 'admin' as const }, true],
    ['installation.confirm', 'installation', { projects: ['nlp'] }, true],
  ])('%s of %s for %j: %s', (type, subject, wish, yes) => expect(maySee(actor(wish), { type, subject })).toBe(yes));
});

describe('headers', () => {
  it.each([
    [undefined, undefined],
    ['*', undefined],
    ['"3"', 3],
    ['W/"12"', 12],
  ])('If-Match %j means %j', (header, generation) => expect(expectedGeneration(header)).toBe(generation));
  it.each(['3', '"x"', '""', '"1", "2"'])('If-Match %j is refused', (header) =>
    expect(() => expectedGeneration(header)).toThrow('If-Match'),
  );

  it.each([
    ['Bearer pk_1', 'pk_1'],
    ['bearer  pk_1 ', 'pk_1'],
    ['Basic pk_1', undefined],
    ['Bearer', undefined],
    ['Bearer a b', undefined],
    [undefined, undefined],
  ])('Authorization %j carries %j', (header, key) => expect(bearerOf(header)).toBe(key));

  it.each(['', 'with space', 'x'.repeat(201), ['a', 'b']])('Idempotency-Key %j is refused', (header) =>
    expect(() => idempotencyKeyOf(header)).toThrow('Idempotency-Key'),
  );
});

describe('pages', () => {
  it('a cursor is given only while there is more, and names the last row shown', () => {
    expect(pageOf([1, 2, 3], 3, (n) => n)).toEqual({ items: [1, 2, 3], nextCursor: null });
    const page = pageOf([1, 2, 3], 2, (n) => n);
    expect(page.items).toEqual([1, 2]);
    expect(readNumberCursor(page.nextCursor!)).toBe(2);
    expect(pageOf([], 2, (n: number) => n)).toEqual({ items: [], nextCursor: null });
  });

  it.each(['', '!!!', 'bnVsbA', writeCursor(1.5), Buffer.from('{}').toString('base64url')])('%j is no cursor', (text) =>
    expect(() => readCursor(text)).toThrow('cursor'),
  );
  it('a cursor of another list is refused', () => {
    expect(() => readNumberCursor(writeCursor('a'))).toThrow('cursor');
    expect(() => readTextCursor(writeCursor(1))).toThrow('cursor');
    expect(readTextCursor(undefined)).toBeUndefined();
  });
});
