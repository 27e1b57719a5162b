import { EventEmitter } from 'node:events';
import type { WriteStream } from 'node:tty';
import { describe, expect, it, vi } from 'vitest';
import { Screen } from './screen.ts';

class Terminal extends EventEmitter {
  columns = 20;
  rows = 3;
  written = '';
  write(text: string): boolean {
    this.written += text;
    return true;
  }
}
const open = (onResize = vi.fn()) => {
  const terminal = new Terminal();
  return { terminal, onResize, screen: new Screen(terminal as unknown as WriteStream, onResize) };
};

describe('the screen', () => {
  it('fills the window row by row, each cleared first, and never more than there is', () => {
    const { terminal, screen } = open();
    terminal.written = '';
    screen.draw(['one', 'two']);
    expect(terminal.written).toBe('\u001b[H\u001b[Kone\r\n\u001b[Ktwo\r\n\u001b[K');
    terminal.written = '';
    screen.draw(['1', '2', '3', '4']);
    expect(terminal.written).toBe('\u001b[H\u001b[K1\r\n\u001b[K2\r\n\u001b[K3');
    screen.close();
  });

  it('is drawn anew when the window changes, until it is closed', () => {
    const { terminal, screen, onResize } = open();
    terminal.emit('resize');
    expect(onResize).toHaveBeenCalledTimes(1);
    terminal.columns = 33;
    expect(screen.width).toBe(33);
    screen.close();
    terminal.emit('resize');
    expect(onResize).toHaveBeenCalledTimes(1);
  });

  it('gives the terminal back: cursor, wrapping, the lines that were there', () => {
    const before = ['exit', 'SIGINT', 'SIGTERM'].map((event) => process.listenerCount(event));
    const { terminal, screen } = open();
    expect(terminal.written).toBe('\u001b[?1049h\u001b[?25l\u001b[?7l');
    terminal.written = '';
    screen.close();
    expect(terminal.written).toBe('\u001b[?7h\u001b[?25h\u001b[?1049l');
    expect(['exit', 'SIGINT', 'SIGTERM'].map((event) => process.listenerCount(event))).toEqual(before);
  });
});
