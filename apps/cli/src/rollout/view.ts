import type { CliSettings } from '../cli.config.ts';
import { colorsFor } from '../color.ts';
import { glyphsFor } from './glyphs.ts';
import type { RolloutView } from './view.plan.ts';

/** How a picture looks on a stream: its colours, its signs and its columns. */
export const viewOn = (
  stream: { isTTY?: boolean; columns?: number },
  { color, environment }: Pick<CliSettings, 'color' | 'environment'>,
): Pick<RolloutView, 'paint' | 'glyphs' | 'width'> => ({
  paint: colorsFor(stream, color),
  glyphs: glyphsFor(environment),
  width: (stream.isTTY && stream.columns) || 80,
});
