import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CrashBook } from './crash-book.ts';

describe('CrashBook', () => {
  let folder: string;
  let path: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'perch-crashes-'));
    path = join(folder, 'crashes.json');
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const crash = (book: CrashBook, evidence: 'explained' | 'unexplained', name = 'm', digest = 'd') => {
    book.begin(name, digest);
    return book.crashed(name, digest, evidence, 'exit code 3');
  };

  it.each([
    ['explained', 2],
    ['unexplained', 3],
  ] as const)('an end that is %s holds back after %i in a row', (evidence, count) => {
    const book = new CrashBook(path);
    for (let n = 1; n < count; n += 1) {
      expect(crash(book, evidence)).toBeUndefined();
      expect([...book.suspects()]).toEqual(['m']);
    }
    expect(crash(book, evidence)).toMatch(/^crashes its server: .*exit code 3/);
    expect(book.heldBack('m', 'd')).toMatch(/^crashes its server/);
    expect([...book.suspects()]).toEqual([]);
    expect(new CrashBook(path).heldBack('m', 'd')).toBe(book.heldBack('m', 'd'));
    expect(book.heldBack('m', 'other settings')).toBeUndefined();
  });

  it('starts to count again after the model was in', () => {
    const book = new CrashBook(path);
    crash(book, 'explained');
    book.begin('m', 'd');
    book.succeeded('m');
    expect(crash(book, 'explained')).toBeUndefined();
  });

  it('holds back nobody that was not alone, also when the other was in before the crash', () => {
    const book = new CrashBook(path);
    for (let n = 0; n < 5; n += 1) {
      book.begin('m', 'd');
      book.begin('beside', 'e');
      book.succeeded('beside');
      expect(book.isAlone('m')).toBe(false);
      expect(book.crashed('m', 'd', 'explained', 'x')).toBeUndefined();
    }
    expect(crash(book, 'explained')).toBeDefined();
  });

  it('counts a death of both when the next Triton knows nothing of the model, and not when it does', () => {
    for (let n = 1; n <= 3; n += 1) {
      new CrashBook(path).begin('m', 'd');
      const next = new CrashBook(path);
      next.settleBefore(() => false);
      expect(next.heldBack('m', 'd') !== undefined).toBe(n === 3);
    }
    new CrashBook(path).begin('served', 'd');
    const next = new CrashBook(path);
    next.settleBefore((name) => name === 'served');
    expect([...next.suspects()]).toEqual([]);
  });

  it('keeps what it has not settled yet over further restarts, and forgets what is on its way no more', () => {
    new CrashBook(path).begin('m', 'd');
    new CrashBook(path).begin('n', 'd');
    const next = new CrashBook(path);
    next.settleBefore(() => false);
    expect([...next.suspects()].sort()).toEqual(['m', 'n']);
    next.begin('o', 'd');
    next.keepComing(() => false);
    const last = new CrashBook(path);
    last.settleBefore(() => false);
    expect([...last.suspects()].sort()).toEqual(['m', 'n']);
  });

  it('takes a file that is none of its own for none', () => {
    writeFileSync(path, '{"models": 3}');
    expect([...new CrashBook(path).suspects()]).toEqual([]);
  });
});
