import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { Inject, Injectable } from '@nestjs/common';
import { AppError, probeKey, sha256Hex, shownMessage } from '@perch/contracts';
import { ARTIFACT_STORE, type ArtifactStore } from './artifacts/artifact.store.ts';

export interface StoreProbe {
  /** Written bytes come back as they were. */
  readsBack: boolean;
  /** A second write under one key is refused: without it a number could be given twice. */
  conditionalWrites: boolean;
  /** Other bytes than those announced are refused. */
  checksums: boolean;
  /** Why a signed URL does not give the bytes here; null: it does. */
  signedUrlFault: string | null;
  tookMs: number;
}

const urlMs = 3_000;

/** Tries on an object of its own what all else relies on; it is deleted again. */
@Injectable()
export class StoreProbeService {
  constructor(@Inject(ARTIFACT_STORE) private readonly store: ArtifactStore) {}

  /** Throws what the store throws when it cannot be reached or written. */
  async probe(): Promise<StoreProbe> {
    const key = probeKey(randomUUID());
    const wrong = probeKey(randomUUID());
    const started = performance.now();
    const bytes = Buffer.from(`perch doctor ${key}`);
    try {
      if (!(await this.store.putIfAbsent(key, bytes)))
        throw new AppError('unavailable', 'the store says that an object is there which nobody wrote');
      return {
        conditionalWrites: !(await this.store.putIfAbsent(key, Buffer.from('another'))),
        readsBack: (await this.text(key)) === bytes.toString(),
        checksums: await this.refuses(wrong),
        signedUrlFault: await this.signedUrlFault(key, bytes.toString()),
        tookMs: Math.round(performance.now() - started),
      };
    } finally {
      await this.store.delete(key).catch(() => undefined); // what is left is collected as garbage
      await this.store.delete(wrong).catch(() => undefined);
    }
  }

  private async text(key: string): Promise<string> {
    const chunks: Buffer[] = [];
    for await (const chunk of await this.store.read(key)) chunks.push(chunk);
    return Buffer.concat(chunks).toString();
  }

  private async refuses(key: string): Promise<boolean> {
    const announced = { sha256: sha256Hex('announced'), sizeBytes: 9 };
    try {
      await this.store.put(key, Readable.from([Buffer.from('different')]), announced);
      return false;
    } catch (error) {
      if (error instanceof AppError && error.code === 'integrity') return true;
      throw error;
    }
  }

  private async signedUrlFault(key: string, wanted: string): Promise<string | null> {
    try {
      const url = await this.store.signGet(key, new Date(Date.now() + 60_000));
      const answer = await fetch(url, { signal: AbortSignal.timeout(urlMs) });
      const text = await answer.text();
      if (answer.status !== 200) return `status ${answer.status}`;
      return text === wanted ? null : 'other bytes';
    } catch (error) {
      return error instanceof AppError ? shownMessage(error) : 'no answer';
    }
  }
}
