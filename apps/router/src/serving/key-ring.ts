import { AppError, sha256Hex, type TableKey } from '@perch/contracts';
import { type CompiledRoute, type CompiledTable, mayCall } from '@perch/routing';

const bearer = /^Bearer +([\x21-\x7e]{1,512})$/i;
const maxKnown = 10_000;

/** Tells who calls. Hashing a secret costs more than choosing a route, so the answer is kept per table. */
export class KeyRing {
  private known = new Map<string, TableKey>();
  private keys: CompiledTable['keys'] | undefined;

  /**
   * Throws `unauthenticated` when the endpoint wants a key and none or an unknown one is given, `forbidden` when the
   * key's scopes leave the endpoint out.
   */
  check(table: CompiledTable, header: string | undefined, { name, route }: CompiledRoute): void {
    if (route.access === 'public') return;
    const key = this.find(table, header);
    if (!mayCall(key, name)) throw new AppError('forbidden', `this key may not call endpoint ${name}`);
  }

  /** The caller's key. Throws `unauthenticated`. */
  find(table: CompiledTable, header: string | undefined): TableKey {
    if (header === undefined)
      throw new AppError('unauthenticated', 'a key is wanted: send "Authorization: Bearer <key>"');
    if (this.keys !== table.keys) {
      this.keys = table.keys;
      this.known.clear();
    }
    const known = this.known.get(header);
    if (known) return known;
    const secret = bearer.exec(header)?.[1];
    const key = secret === undefined ? undefined : table.keys.get(sha256Hex(secret));
    if (!key) throw new AppError('unauthenticated', 'this key is not known: it may be mistyped, revoked or expired');
    if (this.known.size >= maxKnown) this.known.clear();
    this.known.set(header, key);
    return key;
  }
}
