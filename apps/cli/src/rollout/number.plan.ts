/** `12,311`; from ten million on `12.3 M`: nine columns at most. */
export const countText = (count: number): string =>
  count < 1e7 ? Math.round(count).toLocaleString('en-US') : `${Number((count / 1e6).toPrecision(3))} M`;

/** Three figures, no exponent where a person can read it without: `0.00123`, `4.56`, `123`, `1,234`, `1.2e-9`. */
export function figureText(value: number): string {
  if (!Number.isFinite(value)) return value > 0 ? 'infinite' : String(value);
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e7 || size < 1e-4) return value.toExponential(1);
  if (size >= 100) return countText(value);
  return String(Number(value.toPrecision(3)));
}

/** A share as `0.16 %`. */
export const percentText = (share: number): string => `${figureText(share * 100)} %`;

/** A difference of shares as a number of percentage points, without the word. */
export const pointsText = (share: number): string => figureText(share * 100);

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/** `42 s`, `2 min 10 s`, `1 h 5 min`, `3 d`: two units at most. */
export function spanText(ms: number): string {
  if (ms < 1_000) return ms > 0 ? '< 1 s' : '0 s';
  const at = units.findIndex(([, size]) => ms >= size);
  const [unit, size] = units[at]!;
  const [smaller, step] = units[at + 1] ?? ['s', 1_000];
  const rounded = Math.round(ms / step) * step;
  if (rounded >= (units[at - 1]?.[1] ?? Number.POSITIVE_INFINITY)) return spanText(rounded);
  const rest = size === step ? 0 : Math.round((rounded % size) / step);
  return `${Math.floor(rounded / size)} ${unit}${rest > 0 ? ` ${rest} ${smaller}` : ''}`;
}
