import {
  AppError,
  type DecodeOptions,
  imageChoices,
  imageDefaults,
  imageFilters,
  type PreparationOptions,
} from '@perch/contracts/plain';

/** What is wrong with a value, or nothing. */
type Rule = (value: unknown) => string | undefined;
type Rules<T> = { [Name in keyof Required<T>]: Rule };

const within =
  (least: number, most: number): Rule =>
  (value) =>
    Number.isInteger(value) && (value as number) >= least && (value as number) <= most
      ? undefined
      : `wants a whole number from ${least} to ${most}`;
const oneOf =
  (words: readonly string[]): Rule =>
  (value) =>
    words.includes(value as string) ? undefined : `wants one of ${words.join(', ')}`;
const boolean: Rule = (value) => (typeof value === 'boolean' ? undefined : 'wants true or false');
const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value);
const listOf = (value: unknown, lengths: number[], holds: (one: number) => boolean): boolean =>
  Array.isArray(value) && lengths.includes(value.length) && value.every((one) => isNumber(one) && holds(one));
const colour: Rule = (value) =>
  listOf(value, [3], (one) => one >= 0 && one <= 255) ? undefined : 'wants three levels from 0 to 255';
const perChannel: Rule = (value) => (listOf(value, [1, 3], () => true) ? undefined : 'wants 1 or 3 numbers');

const side = within(1, 16_384);
/** `forms`: names that must be there, and names that may. */
const sides =
  (wanted: string, ...forms: readonly (readonly [needs: readonly string[], may: readonly string[]])[]): Rule =>
  (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return wanted;
    const given = Object.entries(value).filter(([, one]) => one !== undefined);
    const names = given.map(([name]) => name);
    const fits = forms.some(
      ([needs, may]) =>
        needs.every((name) => names.includes(name)) &&
        names.every((name) => needs.includes(name) || may.includes(name)),
    );
    return fits && given.every(([, one]) => side(one) === undefined) ? undefined : wanted;
  };
const both = [['height', 'width'], []] as const;
const box = sides('wants height and width, from 1 to 16384', both);
const size = sides(
  'wants height and width, or shortestEdge, longestEdge, or height and maxWidth, from 1 to 16384',
  both,
  [['shortestEdge'], ['longestEdge']],
  [['longestEdge'], []],
  [['height'], ['maxWidth']],
);

const decodeRules: Rules<DecodeOptions> = {
  maxBytes: within(1, 268_435_456),
  maxPixels: within(1, 268_435_456),
  decodeSeconds: within(1, 300),
  animated: oneOf(imageChoices.animated),
  orient: boolean,
  alpha: oneOf(imageChoices.alpha),
  background: colour,
};

const preparationRules: Rules<PreparationOptions> = {
  size,
  fit: oneOf(imageChoices.fit),
  multipleOf: within(1, 1024),
  onlyShrink: boolean,
  resample: oneOf(imageFilters),
  antialias: boolean,
  centerCrop: box,
  cropRounding: oneOf(imageChoices.cropRounding),
  pad: box,
  padAt: oneOf(imageChoices.padAt),
  padColor: (value) => (value === 'zero' ? undefined : colour(value) && `${colour(value)}, or zero`),
  rescaleFactor: (value) => (isNumber(value) && value > 0 ? undefined : 'wants a number above 0'),
  imageMean: perChannel,
  imageStd: (value) =>
    perChannel(value) ?? ((value as number[]).every((one) => one > 0) ? undefined : 'wants numbers above 0'),
  channels: oneOf(imageChoices.channels),
  layout: oneOf(imageChoices.layout),
  datatype: oneOf(imageChoices.datatype),
};

/** Without a schema library: every thread and process of a module loads this. Throws `invalid` that names each fault. */
function check<T extends object>(thing: string, options: T, rules: Rules<T>, more: (options: T) => string[]): T {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw new AppError('invalid', `${thing}: wants an object of options`);
  const faults = Object.entries(options).flatMap(([name, value]) => {
    if (value === undefined) return [];
    const rule = Object.hasOwn(rules, name) ? rules[name as keyof T] : undefined;
    const fault = rule ? rule(value) : `is no option; there are ${Object.keys(rules).join(', ')}`;
    return fault ? [`${name}: ${fault}`] : [];
  });
  const all = faults.length > 0 ? faults : more(options);
  if (all.length > 0) throw new AppError('invalid', `${thing}: ${all.slice(0, 3).join('; ')}`);
  return options;
}

export function checkDecodeOptions(options: DecodeOptions): Required<DecodeOptions> {
  const given = Object.entries(check('decodeImage', options, decodeRules, () => []));
  return { ...imageDefaults, ...Object.fromEntries(given.filter(([, value]) => value !== undefined)) };
}

export const checkPreparationOptions = (options: PreparationOptions): PreparationOptions =>
  check('image tensor', options, preparationRules, ({ antialias, resample = 'bilinear' }) =>
    antialias === false && resample !== 'bilinear' && resample !== 'nearest'
      ? ['antialias: false wants resample bilinear or nearest']
      : [],
  );
