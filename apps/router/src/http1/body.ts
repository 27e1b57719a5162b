const pieceBytes = 1_048_576;
const unitBytes = 65_536;
const keptBytes = 8 * 1_048_576;

/**
 * Big buffers used again instead of allocated anew: their pages are there already, while fresh ones cost more than all
 * the copying. At most 8 MiB are kept.
 */
const kept: Buffer[] = [];
let keptSize = 0;

function takePiece(size: number): Buffer {
  if (size < unitBytes) return Buffer.allocUnsafe(size);
  const at = kept.findIndex((one) => one.length >= size && one.length <= 2 * size + unitBytes);
  if (at < 0) return Buffer.allocUnsafeSlow(Math.ceil(size / unitBytes) * unitBytes);
  const [piece] = kept.splice(at, 1);
  keptSize -= piece!.length;
  return piece!;
}

function keepPiece(piece: Buffer): void {
  if (piece.length < unitBytes || keptSize + piece.length > keptBytes) return;
  kept.push(piece);
  keptSize += piece.length;
}

/**
 * A request's body, copied out of the read buffer: in one piece up to 1 MiB when its length is known. Room is taken as
 * bytes come, so that a length alone costs nothing.
 */
export class Body {
  size = 0;
  private readonly expected: number | undefined;
  private readonly full: Buffer[] = [];
  private piece: Buffer | undefined;
  private wanted = 0;
  private used = 0;

  /** `expected`: the length announced; undefined for a chunked body. */
  constructor(expected: number | undefined) {
    this.expected = expected;
  }

  append(bytes: Buffer, from: number, to: number): void {
    let at = from;
    while (at < to) {
      if (!this.piece || this.used === this.wanted) this.nextPiece();
      const end = Math.min(to, at + this.wanted - this.used);
      this.piece!.set(at === 0 && end === bytes.length ? bytes : bytes.subarray(at, end), this.used);
      this.used += end - at;
      this.size += end - at;
      at = end;
    }
  }

  /** What came, in order. */
  pieces(): Buffer[] {
    if (!this.piece || this.used === 0) return this.full.slice();
    const last = this.used === this.piece.length ? this.piece : this.piece.subarray(0, this.used);
    return this.full.length === 0 ? [last] : [...this.full, last];
  }

  /** Gives the room back. Nobody may hold a view of it any more. */
  recycle(): void {
    if (this.piece) keepPiece(this.piece);
    for (const piece of this.full) keepPiece(piece);
    this.piece = undefined;
    this.full.length = 0;
  }

  private nextPiece(): void {
    if (this.piece)
      this.full.push(this.wanted === this.piece.length ? this.piece : this.piece.subarray(0, this.wanted));
    this.wanted = this.expected === undefined ? unitBytes : Math.min(pieceBytes, this.expected - this.size);
    this.piece = takePiece(this.wanted);
    this.used = 0;
  }
}
