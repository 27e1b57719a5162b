import { existsSync } from 'node:fs';
import { findTriton } from '../../scripts/real-triton.mjs';

/** Why a real part cannot be used here, with the command that brings it; undefined when it is there. */
type Look = () => string | undefined;

const parts: Record<string, Look> = {
  triton: () => {
    const found = findTriton();
    return found.found && existsSync(found.command) ? undefined : `no real Triton: ${found.reason}`;
  },
};

/** Adds a real part; the look is taken when a suite asks. */
export function registerRealPart(name: string, look: Look): void {
  parts[name] = look;
}

/**
 * For `describe.skipIf(missingReason('triton'))`: the reason why the part is missing, which is printed once, or
 * undefined. With PERCH_REQUIRE_REAL=1 a missing part is a failure instead.
 */
export function missingReason(name: string): string | undefined {
  const look = parts[name];
  if (!look) throw new Error(`no real part is named "${name}"; known are ${Object.keys(parts).join(', ')}`);
  const reason = look();
  if (reason === undefined) return undefined;
  if (process.env['PERCH_REQUIRE_REAL'] === '1') throw new Error(`PERCH_REQUIRE_REAL=1: ${reason}`);
  console.warn(`skipped: ${reason}`);
  return reason;
}
