/** One line of a plot: a value for each place on the x axis, or null where there is none. */
export interface Line {
  name: string;
  values: readonly (number | null)[];
}

export interface Plot {
  title: string;
  x: { label: string; ticks: readonly string[] };
  y: { label: string; ticks: readonly number[]; logarithmic?: boolean; format: (value: number) => string };
  lines: readonly Line[];
}

const width = 720;
const height = 380;
const left = 80;
const right = 150;
const top = 44;
const bottom = 56;
const colours = ['#0b6e4f', '#c1440e', '#3b5ba5', '#8d6a9f'];
const dashes = ['', '6 3', '2 3', '8 3 2 3'];

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
const text = (x: number, y: number, anchor: string, content: string, more = '') =>
  `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" ${more}>${escaped(content)}</text>`;

/** The plot as an SVG text; readable on a light and on a dark page, and without colours. */
export function drawPlot({ title, x, y, lines }: Plot): string {
  const scale = (value: number) => (y.logarithmic ? Math.log10(value) : value);
  const [least, most] = [scale(y.ticks[0]!), scale(y.ticks.at(-1)!)];
  const atX = (place: number) => left + ((width - left - right) * (place + 0.5)) / x.ticks.length;
  const atY = (value: number) => {
    const part = (Math.min(Math.max(scale(value), least), most) - least) / (most - least);
    return height - bottom - (height - top - bottom) * part;
  };
  const grid = y.ticks.map(
    (tick) =>
      `<line x1="${left}" x2="${width - right}" y1="${atY(tick).toFixed(1)}" y2="${atY(tick).toFixed(1)}" stroke="#ddd"/>` +
      text(left - 8, atY(tick) + 4, 'end', y.format(tick)),
  );
  const places = x.ticks.map((tick, place) => text(atX(place), height - bottom + 20, 'middle', tick));
  const drawn = lines.map(({ name, values }, at) => {
    const points = values.flatMap((value, place) => (value === null ? [] : [[atX(place), atY(value)] as const]));
    const style = `stroke="${colours[at]}" stroke-dasharray="${dashes[at]}"`;
    // where there is no value the line is interrupted
    const strokes = values.slice(1).flatMap((value, before) => {
      const from = values[before]!;
      if (value === null || from === null) return [];
      return `M${atX(before).toFixed(1)} ${atY(from).toFixed(1)}L${atX(before + 1).toFixed(1)} ${atY(value).toFixed(1)}`;
    });
    const dots = points.map(
      ([px, py]) => `<circle cx="${px.toFixed(1)}" cy="${py.toFixed(1)}" r="3" fill="${colours[at]}"/>`,
    );
    const legendY = top + 18 + at * 22;
    return [
      `<path d="${strokes.join('')}" fill="none" stroke-width="2" ${style}/>`,
      ...dots,
      `<line x1="${width - right + 12}" x2="${width - right + 38}" y1="${legendY}" y2="${legendY}" stroke-width="2" ${style}/>`,
      text(width - right + 44, legendY + 4, 'start', name),
    ].join('\n');
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    text(16, 16, 'start', title, 'font-size="15" font-weight="bold"'),
    ...grid,
    ...places,
    text((left + width - right) / 2, height - 12, 'middle', x.label),
    text(16, top - 14, 'start', y.label),
    ...drawn,
    '</svg>',
    '',
  ].join('\n');
}
