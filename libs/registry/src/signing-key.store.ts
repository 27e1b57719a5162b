import { randomBytes } from 'node:crypto';
import type { Tx } from '@perch/platform/database';

/** The key of the folder store's URLs: made by whoever starts first, the same for all control planes. */
export async function keepSigningKey(tx: Tx): Promise<string> {
  await tx.query(`insert into signing_keys (name, secret) values ('store', $1) on conflict (name) do nothing`, [
    randomBytes(32).toString('base64url'),
  ]);
  const [row] = await tx.query(`select secret from signing_keys where name = 'store'`);
  return row.secret;
}
