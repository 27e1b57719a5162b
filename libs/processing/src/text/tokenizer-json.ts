import type { WordPieceJson } from './word-piece.ts';

interface SpecialPiece {
  SpecialToken: { id: string; type_id: number };
}
interface SequencePiece {
  Sequence: { id: 'A' | 'B'; type_id: number };
}

export interface PostProcessorJson {
  type?: string;
  single?: (SpecialPiece | SequencePiece)[];
  pair?: (SpecialPiece | SequencePiece)[];
  special_tokens?: Record<string, { ids?: number[] }>;
  cls?: [string, number];
  sep?: [string, number];
  processors?: PostProcessorJson[];
}

/** The fields of a tokenizer.json that are read here; the library reads the rest. */
export interface TokenizerJson extends WordPieceJson {
  truncation?: { direction?: string } | null;
  padding?: { pad_id?: number; pad_token?: string; direction?: string } | null;
  added_tokens?: { id: number; content: string; normalized?: boolean }[];
  post_processor?: PostProcessorJson | null;
  decoder?: { type?: string } | null;
}
