import { AppError, type Framework, type frameworks } from '@perch/contracts';

interface Notes {
  note(sentence: string): void;
}

/**
 * ClearML allows any text as a name, a name here is of A-Z a-z 0-9 . _ -: every other run of characters becomes one "-".
 * The same text always gives the same name, so that pasted lines find each other's models.
 */
export function plainName(text: string, thing: string, notes?: Notes): string {
  const plain = text
    .normalize('NFKD')
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/-{2,}/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 64)
    .replace(/-+$/, '');
  if (!plain) throw new AppError('invalid', `${thing} "${text}": a name wants at least one letter or digit`);
  if (plain !== text) notes?.note(`note: ${thing} "${text}" is called ${plain} here`);
  return plain;
}

export const plainTag = (text: string): string =>
  text
    .replace(/[^A-Za-z0-9._:/-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 128);

/** A model's name in `auto-update` is a regular expression at ClearML; here it is the name itself, anchors dropped. */
export function exactName(pattern: string): string {
  const name = pattern.replace(/^\^|^\$(?=.*\^$)/, '').replace(/[$^]$/, '');
  if (/[\\*+?[\](){}|^$]/.test(name))
    throw new AppError(
      'invalid',
      `--name "${pattern}" is a pattern; an endpoint follows one model: write its whole name`,
    );
  return name;
}

const known: Record<string, Framework> = {
  onnx: 'onnx', tensorrt: 'tensorrt', pytorch: 'pytorch', tensorflow: 'tensorflow', keras: 'tensorflow',
  openvino: 'openvino', python: 'python', ensemble: 'ensemble', custom: 'custom',
}; // biome-ignore format: one table
const foreign = ['scikit-learn', 'xgboost', 'lightgbm', 'caffe', 'paddle', 'joblib', 'other'];

/** ClearML's names of frameworks besides ours; `was`: the name to keep as metadata, where ours has no word for it. */
export function clearmlFramework(text: string): { framework: (typeof frameworks)[number]; was?: string } {
  const word = text.toLowerCase();
  if (known[word]) return { framework: known[word] };
  if (foreign.includes(word)) return { framework: 'custom', was: word };
  throw new AppError(
    'invalid',
    `--framework: wants one of ${[...Object.keys(known), ...foreign].join(', ')}, got "${text}"`,
  );
}
