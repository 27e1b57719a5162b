import { AppError } from '@perch/contracts';

export type Flags = Record<string, unknown>;

export const text = (flags: Flags, name: string): string | undefined => flags[name] as string | undefined;
export const list = (flags: Flags, name: string): string[] | undefined => flags[name] as string[] | undefined;

export function whole(flags: Flags, name: string, flag: string): number | undefined {
  const value = text(flags, name);
  if (value === undefined) return undefined;
  if (!/^\d{1,9}$/.test(value)) throw new AppError('invalid', `${flag}: wants a whole number, got "${value}"`);
  return Number(value);
}

export function numbers(value: string, flag: string): number[] {
  const parsed = value.split(',').map((part) => Number(part.trim() || Number.NaN));
  if (parsed.some(Number.isNaN)) throw new AppError('invalid', `${flag}: wants numbers such as 8,16, got "${value}"`);
  return parsed;
}

export function yes(flags: Flags, name: string, flag: string): boolean | undefined {
  const value = text(flags, name);
  if (value === undefined) return undefined;
  if (value !== 'true' && value !== 'false')
    throw new AppError('invalid', `${flag}: wants true or false, got "${value}"`);
  return value === 'true';
}

/** The members that have a value; undefined when there is none. */
export const given = <T extends object>(part: T): T | undefined => {
  const known = Object.entries(part).filter(([, value]) => value !== undefined);
  return known.length > 0 ? (Object.fromEntries(known) as T) : undefined;
};
