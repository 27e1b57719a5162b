import { open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Writes a small file so that after any crash either the old text is there or the new one. `mode` e.g. 0o600. */
export async function replaceFile(path: string, text: string, mode = 0o644): Promise<void> {
  const aside = `${path}.new`;
  const file = await open(aside, 'w', mode);
  try {
    await file.chmod(mode);
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(aside, path);
  await syncFolder(dirname(path));
}

/** Makes renames in a folder outlive a crash of the machine. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
