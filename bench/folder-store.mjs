/** A folder store served as the control plane serves it, in a process of its own: prints its address, then reads `sign <key>` lines. */
import { createInterface } from 'node:readline';
import { silentLogger } from '@perch/platform';
import { FolderStore } from '@perch/registry';
import fastify from 'fastify';
import { StorePath } from '../apps/control-plane/dist/store-api/store.path.js';

const app = fastify();
let address = '';
const store = await FolderStore.open({
  root: process.argv[2],
  publicUrl: () => address,
  signingKey: async () => 'a key for the bench',
});
await new StorePath(store, silentLogger, { httpAdapter: { getInstance: () => app } }).onModuleInit();
address = await app.listen({ host: '127.0.0.1', port: 0 });
console.log(address);
for await (const key of createInterface({ input: process.stdin }))
  console.log(await store.signGet(key, new Date(Date.now() + 3_600_000)));
process.exit(0);
