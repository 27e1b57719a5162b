import type { ProcessingSpec } from '@perch/contracts';
import { describe, expect, it } from 'vitest';
import { leavesProcessing, processingFlags } from './processing-flags.plan.ts';
import { processingText } from './processing-text.plan.ts';

const rules: ProcessingSpec = { module: 'ner/rules@3', isolation: 'process', options: { k: 1 } };

describe('processing from flags', () => {
  it.each<[string, object, ProcessingSpec | undefined, ProcessingSpec | undefined]>([
    ['nothing said', {}, undefined, undefined],
    ['nothing said over something', {}, rules, rules],
    ['a built-in', { processing: 'text-embedding' }, undefined, { builtin: 'text-embedding' }],
    ['a module', { processing: 'ner/rules' }, undefined, { module: 'ner/rules' }],
    ['a module by number', { processing: 'ner/rules@3', isolation: 'process' }, undefined, { module: 'ner/rules@3', isolation: 'process' }],
    ['another number keeps the rest', { processing: 'ner/rules@4' }, rules, { ...rules, module: 'ner/rules@4' }],
    ['the newest keeps the rest', { processing: 'ner/rules' }, rules, { ...rules, module: 'ner/rules' }],
    ['another module keeps nothing', { processing: 'other' }, rules, { module: 'other' }],
    ['a built-in keeps nothing', { processing: 'passthrough' }, rules, { builtin: 'passthrough' }],
    ['where it runs, alone', { isolation: 'worker' }, rules, { ...rules, isolation: 'worker' }],
    ['an option more', { option: ['t=0.5', 'names=["a"]'] }, rules, { ...rules, options: { k: 1, t: 0.5, names: ['a'] } }],
    ['all options', { processingOptions: '{"t":2}' }, rules, { ...rules, options: { t: 2 } }],
    ['all options, and one over them', { processingOptions: '{"t":2}', option: ['u=3'] }, rules, { ...rules, options: { t: 2, u: 3 } }],
    ['no options any more', { processingOptions: '{}' }, rules, { ...rules, options: {} }],
    ['what the version carries', { processing: 'version' }, rules, undefined],
  ])('%s', (_what, flags, before, wanted) => {
    expect(processingFlags(flags as Record<string, unknown>, before)).toEqual(wanted);
    expect(leavesProcessing(flags as Record<string, unknown>)).toBe((flags as { processing?: string }).processing === 'version');
  }); // biome-ignore format: a table

  it.each([
    [{ option: ['a=1'] }, '--option: wants --processing NAME besides'],
    [{ isolation: 'worker' }, '--isolation: wants --processing NAME besides'],
    [{ processingOptions: '{}' }, '--processing-options: wants --processing NAME besides'],
    [{ processing: 'a', processingOptions: '[1]' }, '--processing-options: wants a JSON object'],
    [{ processing: 'a', processingOptions: '{a:1}' }, '--processing-options: wants a JSON object'],
    [{ processing: 'version', isolation: 'worker' }, '--processing version'],
  ])('%j is refused', (flags, words) => expect(() => processingFlags(flags, undefined)).toThrow(words));
});

it.each<[ProcessingSpec, string]>([
  [{ builtin: 'passthrough' }, 'passthrough'],
  [{ module: 'a@1' }, 'module a@1, isolation worker'],
  [rules, 'module ner/rules@3, isolation process {"k":1}'],
])('%j in words', (processing, words) => expect(processingText(processing)).toBe(words));
