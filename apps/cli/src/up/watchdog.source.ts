import { type ChildProcess, spawn } from 'node:child_process';

/**
 * Reads "add PID SIGNAL" and "del PID" from its standard input. When that closes without "bye", whoever wrote to it was
 * killed: then it ends what is left, newest first, each with its signal and by force after $0 tenths
 * of a second.
 */
const script = `
trap '' INT TERM HUP
alive() {
  kill -0 "$1" 2>/dev/null || return 1
  line=""
  if [ -r "/proc/$1/stat" ]; then read -r line 2>/dev/null < "/proc/$1/stat"; fi
  case "$line" in *") Z "*) return 1 ;; esac
  return 0
}
left=""
while read -r verb pid signal; do
  case "$verb" in
    add) left="$pid:$signal $left" ;;
    del) kept=""; for one in $left; do [ "\${one%%:*}" = "$pid" ] || kept="$kept $one"; done; left="$kept" ;;
    bye) exit 0 ;;
  esac
done
for one in $left; do
  pid="\${one%%:*}"; kill -"\${one##*:}" "$pid" 2>/dev/null
  tries=0; while [ $tries -lt $0 ] && alive "$pid"; do sleep 0.1; tries=$((tries + 1)); done
  kill -KILL "-$pid" 2>/dev/null
done
exit 0
`;

/** Sees to it that no child outlives us, even when we are killed without a chance to stop them. */
export class Watchdog {
  private child: ChildProcess | undefined;
  private readonly watched = new Map<number, string>();
  private ending = false;

  /** `graceMs`: how long a child may take to end by itself. */
  constructor(private readonly graceMs = 5_000) {}

  get pid(): number | undefined {
    return this.child?.pid;
  }

  start(): void {
    // A process group of its own: Ctrl-C in the terminal is ours to handle.
    const child = spawn('/bin/sh', ['-c', script, String(Math.ceil(this.graceMs / 100))], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true,
      cwd: '/',
    });
    child.on('error', () => undefined);
    child.stdin?.on('error', () => undefined);
    child.on('exit', () => {
      if (!this.ending) setTimeout(() => !this.ending && this.start(), 200).unref();
    });
    this.child = child;
    for (const [pid, signal] of this.watched) this.write(`add ${pid} ${signal}`);
  }

  watch(pid: number, signal: 'TERM' | 'INT' = 'TERM'): void {
    this.watched.set(pid, signal);
    this.write(`add ${pid} ${signal}`);
  }
  forget(pid: number): void {
    this.watched.delete(pid);
    this.write(`del ${pid}`);
  }

  async stop(): Promise<void> {
    this.ending = true;
    const child = this.child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise<void>((done) => child.once('exit', () => done()));
    this.write('bye');
    child.stdin?.end();
    const late = setTimeout(() => child.kill('SIGKILL'), 2_000);
    await ended;
    clearTimeout(late);
  }

  private write(line: string): void {
    if (this.child?.stdin?.writable) this.child.stdin.write(`${line}\n`);
  }
}
