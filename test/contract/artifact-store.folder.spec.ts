import { openTestFolder } from '../support/object-store.ts';
import { artifactStoreContract } from './artifact-store.contract.ts';

artifactStoreContract('folder', () => openTestFolder());
