import { AppError } from '@perch/contracts';

const unitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** `500ms`, `30s`, `2m`, `1h`, `7d`; a bare number means seconds. */
export function parseDuration(text: string, thing: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(text.trim());
  if (!match) throw new AppError('invalid', `${thing}: wants a time such as 500ms, 30s or 2m, got "${text}"`);
  return Math.round(Number(match[1]) * unitMs[(match[2] ?? 's') as keyof typeof unitMs]);
}

const unitBytes = { '': 1, k: 1_000, m: 1_000_000, g: 1_000_000_000, ki: 1_024, mi: 1_048_576, gi: 1_073_741_824 };

/** `4194304`, `4MiB`, `500kB`. */
export function parseSize(text: string, thing: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*(k|m|g|ki|mi|gi)?b?$/i.exec(text.trim());
  if (!match) throw new AppError('invalid', `${thing}: wants a size such as 500kB or 4MiB, got "${text}"`);
  return Math.round(Number(match[1]) * unitBytes[(match[2] ?? '').toLowerCase() as keyof typeof unitBytes]);
}

export function formatBytes(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  const steps = ['kB', 'MB', 'GB', 'TB'];
  let value = bytes / 1_000;
  let step = 0;
  while (value >= 999.5 && step < steps.length - 1) {
    value /= 1_000;
    step += 1;
  }
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ${steps[step]}`;
}

/** `12 s ago`; times are ISO texts. */
export function formatAge(iso: string | null | undefined, now: number): string {
  if (!iso) return '-';
  const seconds = Math.max(0, Math.round((now - Date.parse(iso)) / 1_000));
  if (seconds < 100) return `${seconds} s ago`;
  if (seconds < 6_000) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 172_800) return `${Math.round(seconds / 3_600)} h ago`;
  return `${Math.round(seconds / 86_400)} d ago`;
}
