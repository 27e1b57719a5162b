import type { PictureBox } from '@perch/processing';

export interface Box extends PictureBox {
  /** Mean of the map within it. */
  score: number;
}

/** Numbers row by row, each of them a cell. */
export interface CellMap {
  values: Float32Array;
  width: number;
  height: number;
}

/** Rectangles around cells above `threshold` that touch one another, corners too; in the order of their topmost cells. */
export function boxesOf(map: CellMap, threshold: number): Box[] {
  const { values, width, height } = map;
  const seen = new Uint8Array(values.length);
  const boxes: Box[] = [];
  for (let start = 0; start < values.length; start += 1) {
    if (seen[start] || values[start]! <= threshold) continue;
    let [left, top, right, bottom] = [width, height, 0, 0];
    const open = [start];
    seen[start] = 1;
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      const x = at % width;
      const y = (at - x) / width;
      [left, top, right, bottom] = [Math.min(left, x), Math.min(top, y), Math.max(right, x), Math.max(bottom, y)];
      for (let ny = Math.max(0, y - 1); ny <= Math.min(height - 1, y + 1); ny += 1)
        for (let nx = Math.max(0, x - 1); nx <= Math.min(width - 1, x + 1); nx += 1) {
          const next = ny * width + nx;
          if (seen[next] || values[next]! <= threshold) continue;
          seen[next] = 1;
          open.push(next);
        }
    }
    const box = { left, top, width: right - left + 1, height: bottom - top + 1 };
    boxes.push({ ...box, score: meanIn(map, box) });
  }
  return boxes;
}

function meanIn({ values, width }: CellMap, box: PictureBox): number {
  let sum = 0;
  for (let y = box.top; y < box.top + box.height; y += 1)
    for (let x = box.left; x < box.left + box.width; x += 1) sum += values[y * width + x]!;
  return sum / (box.width * box.height);
}
