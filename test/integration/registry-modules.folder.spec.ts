import { modulesSuite } from './registry-modules.ts';

modulesSuite('a folder', async () => ({}));
