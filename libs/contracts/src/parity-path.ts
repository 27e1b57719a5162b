/** What the reference made of some texts stands beside a tokenizer: `tokenizer.parity.json` beside `tokenizer.json`. */
const parityPath = /^((?:.*\/)?[^/]+)\.parity\.json$/;
export const parityPathOf = (tokenizer: string): string => tokenizer.replace(/(\.json)?$/, '.parity.json');
/** The tokenizer that a file holds to the reference; undefined for a file that is none. */
export const tokenizerOfParity = (path: string): string | undefined => {
  const name = parityPath.exec(path)?.[1];
  return name === undefined ? undefined : `${name}.json`;
};
