import { garbageSuite } from './registry-garbage.ts';

garbageSuite('a folder', async () => ({}));
