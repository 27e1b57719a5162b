/** Real models for tests, built once and cached outside the tree. */
export { buildMinilm, type MinilmVariant, minilmFolder } from '../../scripts/models/minilm.mjs';
