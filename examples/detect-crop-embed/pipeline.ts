import { definePipeline, each, type PictureBox } from '@perch/processing';

interface Request {
  /** Base64. */
  image: string;
  /** Pictures of what there is, base64, and what they are called. */
  catalogue: string[];
  names: string[];
}

interface Likeness {
  name: string;
  similarity: number;
}

/** Things in a picture: found, cut out, embedded one by one, and named after the nearest one of a catalogue. */
export default definePipeline<Request>('things/name', ({ body, endpoint, mapModule, mapEndpoint }) => {
  const found = endpoint<{ boxes: PictureBox[] }>('find', 'things/find', { input: { image: body.image } });
  const known = endpoint<{ embeddings: number[][] }>('known', 'things/embed', { input: { images: body.catalogue } });
  const crops = mapModule<PictureBox, { image: string }>('crop', 'crop', {
    over: found.boxes,
    input: (box) => ({ image: body.image, box }),
  });
  const vectors = mapEndpoint<{ image: string }, { embedding: number[] }>('embed', 'things/embed', {
    over: crops,
    input: (crop) => ({ image: crop.image }),
  });
  const named = mapModule<{ embedding: number[] }, { ranking: Likeness[] }>('nearest', 'things-nearest', {
    over: vectors,
    input: ({ embedding }) => ({ query: embedding, candidates: known.embeddings, names: body.names }),
  });
  return { boxes: found.boxes, embeddings: each(vectors).embedding, nearest: each(named).ranking[0]! };
});
