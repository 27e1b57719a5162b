import { uploadSuite } from './registry-uploads.ts';

uploadSuite('a folder', async () => ({}));
