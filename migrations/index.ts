import { AddWork1790000000000 } from './1790000000000-add-work.ts';

/** Every change of the schema, oldest first. Add a new file; never edit one that has been released. */
export const migrations = [AddWork1790000000000];
