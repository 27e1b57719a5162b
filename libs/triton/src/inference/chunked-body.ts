/** Reads an HTTP/1.1 chunked body piece by piece. Strict: only CRLF, hexadecimal sizes of at most 8 digits, extensions refused. */
export class ChunkedBody {
  done = false;
  private state: 'size' | 'size-end' | 'data' | 'data-end' | 'data-end-lf' | 'trailer' | 'trailer-end' = 'size';
  private digits = 0;
  private left = 0;
  private trailerBytes = 0;
  private lineBytes = 0;

  /**
   * Takes bytes from `at` to `to`; hands data to `put` as views that are only valid during the call. Returns where it
   * stopped: behind the body when `done`, else `to`. Throws an `Error` on anything malformed.
   */
  take(bytes: Uint8Array, at: number, to: number, put: (from: number, to: number) => void): number {
    let i = at;
    while (i < to && !this.done) {
      if (this.state === 'data') {
        const end = Math.min(to, i + this.left);
        put(i, end);
        this.left -= end - i;
        i = end;
        if (this.left === 0) this.state = 'data-end';
      } else this.step(bytes[i++]!);
    }
    return i;
  }

  private step(byte: number): void {
    switch (this.state) {
      case 'size':
        this.sizeByte(byte);
        return;
      case 'size-end':
        expectByte(byte, 10);
        this.state = this.left === 0 ? 'trailer' : 'data';
        this.digits = 0;
        return;
      case 'data-end':
        expectByte(byte, 13);
        this.state = 'data-end-lf';
        return;
      case 'data-end-lf':
        expectByte(byte, 10);
        this.state = 'size';
        return;
      default:
        this.trailerByte(byte);
    }
  }

  private sizeByte(byte: number): void {
    if (byte === 13 && this.digits > 0) {
      this.state = 'size-end';
      return;
    }
    const digit = hexDigit(byte);
    this.digits += 1;
    if (digit < 0 || this.digits > 8) throw new Error('bad chunk size');
    this.left = (this.digits === 1 ? 0 : this.left * 16) + digit;
  }

  /** Trailers are read and dropped; a bare line end in them is refused. */
  private trailerByte(byte: number): void {
    this.trailerBytes += 1;
    if (this.trailerBytes > 8_192) throw new Error('trailers too long');
    if (this.state === 'trailer-end') {
      expectByte(byte, 10);
      if (this.lineBytes === 0) this.done = true;
      this.lineBytes = 0;
      this.state = 'trailer';
    } else if (byte === 13) this.state = 'trailer-end';
    else if (byte === 10) throw new Error('bare line end in the trailers');
    else this.lineBytes += 1;
  }
}

function expectByte(byte: number, wanted: number): void {
  if (byte !== wanted) throw new Error('bad chunk end');
}

function hexDigit(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const lower = byte | 32;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}
