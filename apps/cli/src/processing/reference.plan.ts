import { AppError, moduleName } from '@perch/contracts';

export interface ModuleReference {
  name: string;
  number: number | undefined;
}

/** `text/sentiment` or `text/sentiment@3`. */
export function parseModuleReference(text: string): ModuleReference {
  const match = /^([^@]+)(?:@v?([1-9]\d{0,9}))?$/.exec(text.trim());
  if (!match || !moduleName.safeParse(match[1]).success)
    throw new AppError('invalid', `module "${text}": wants name or name@3; names are of a-z 0-9 . _ - and /`);
  return { name: match[1] as string, number: match[2] === undefined ? undefined : Number(match[2]) };
}
