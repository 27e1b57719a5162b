import picocolors from 'picocolors';

/** Colours for one stream: only where a person looks at it, and never against NO_COLOR. */
export const colorsFor = (stream: { isTTY?: boolean }, allowed: boolean) =>
  picocolors.createColors(allowed && stream.isTTY === true);
