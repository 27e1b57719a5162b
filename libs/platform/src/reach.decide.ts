import { AppError } from '@perch/contracts';

const octets = (text: string): number[] | undefined => {
  const parts = text.split('.').map(Number);
  return parts.length === 4 && parts.every((part) => Number.isInteger(part) && part >= 0 && part <= 255)
    ? parts
    : undefined;
};

/** IPv4 inside IPv6 (mapped, or behind a NAT64 or 6to4 gateway) is judged as what it is. */
function embeddedV4(address: string): string | undefined {
  const dotted = /^(?:::(?:ffff:)?|64:ff9b::)(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
  if (dotted) return dotted[1];
  const hex =
    /^(?:::ffff:|64:ff9b::)([0-9a-f]{1,4}):([0-9a-f]{1,4})$/i.exec(address) ??
    /^2002:([0-9a-f]{1,4}):([0-9a-f]{1,4}):/i.exec(address);
  if (!hex) return undefined;
  const [high, low] = [Number.parseInt(hex[1] as string, 16), Number.parseInt(hex[2] as string, 16)];
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}

/**
 * What an address is to a server that calls URLs which others gave it: `public`; `private` (loopback and private networks: where
 * other services of the house live); `never` (link-local, where clouds hand out credentials, and addresses of no host).
 */
export function addressReach(address: string): 'public' | 'private' | 'never' {
  const v4 = octets(address) ?? octets(embeddedV4(address) ?? '');
  if (v4) {
    const [a, b] = v4 as [number, number, number, number];
    if ((a === 169 && b === 254) || a === 0 || a >= 224 || v4.join('.') === '100.100.100.200') return 'never';
    const inside = a === 10 || a === 127 || (a === 172 && b >= 16 && b < 32) || (a === 192 && b === 168);
    return inside || (a === 100 && b >= 64 && b < 128) ? 'private' : 'public';
  }
  const text = address.toLowerCase();
  if (/^fe[89ab]/.test(text) || text.startsWith('ff') || text === '::' || text.startsWith('fd00:ec2:')) return 'never';
  if (text === '::1' || /^f[cd]/.test(text)) return 'private';
  return 'public';
}

/** How far a call to a URL of somebody else's may reach: the public internet, the house as well, or anything. */
export type Reach = 'public' | 'private' | 'any';

/** Throws `forbidden` when one of the addresses of a host may not be called. */
export function checkReach(host: string, addresses: readonly string[], reach: Reach): void {
  for (const address of addresses) {
    const place = addressReach(address);
    if (reach === 'any' || place === 'public' || (place === 'private' && reach === 'private')) continue;
    const why = place === 'never' ? 'a link-local or reserved address' : 'an address of a private network';
    throw new AppError('forbidden', `URL: ${host} is ${address}, ${why}; the control plane does not call there`);
  }
}
