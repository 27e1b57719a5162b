import { describe, expect, it } from 'vitest';
import { chooseVersions, versionOf } from './version.plan.ts';

describe('versions of a model folder', () => {
  it.each([
    ['1', '1'],
    ['2.tmp', '2'],
    ['9223372036854775807', '9223372036854775807'],
    ['9223372036854775808', undefined],
    ['01', undefined],
    ['0', undefined],
    ['v1', undefined],
    ['.staging', undefined],
  ])('%s is version %s', (folder, version) => expect(versionOf(folder)).toBe(version));

  const onDisk = ['10', '9', '2', '1'];
  it.each([
    ['no policy', undefined, ['10']],
    ['latest 2', { latest: { num_versions: 2 } }, ['9', '10']],
    ['latest without a number', { latest: {} }, ['10']],
    ['latest beyond all', { latest: { num_versions: 9 } }, ['1', '2', '9', '10']],
    ['all', { all: {} }, ['1', '2', '9', '10']],
    ['specific, with absent ones', { specific: { versions: [2, 7] } }, ['2']],
    ['specific, none there', { specific: { versions: [7] } }, []],
  ])('%s', (_what, policy, chosen) => expect(chooseVersions(onDisk, policy)).toEqual(chosen));

  it('counts a number once', () => expect(chooseVersions(['2', '2', '1'], { all: {} })).toEqual(['1', '2']));
});
