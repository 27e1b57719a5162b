/** So many bytes of a TensorRT plan tell which version wrote it. */
export const planHeaderBytes = 28;

const tag = 0x74727466;

/**
 * The TensorRT version that wrote a plan, from its first bytes; null: another layout, or no plan at all. The GPU it was
 * built for stands in no place that is documented.
 */
export function planVersion(header: Uint8Array): string | null {
  if (header.length < planHeaderBytes) return null;
  const view = new DataView(header.buffer, header.byteOffset, header.byteLength);
  // Tag, then the layout's own number; the place of the version is known for layout 0 alone.
  if (view.getUint32(0, true) !== tag || view.getUint32(4, true) !== 0) return null;
  return [24, 25, 26].map((at) => view.getUint8(at)).join('.');
}
