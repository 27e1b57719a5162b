import { AppError, type ChatMessage, type CustomChatTemplate, type TextGenerationOptions } from '@perch/contracts';

type Template = CustomChatTemplate & {
  /** What ends the model's turn: a token where the tokenizer has it, else a string. */
  stop: string[];
};
type TemplateName = Extract<TextGenerationOptions['chatTemplate'], string>;

/** `<|role|>` on a line of its own, the message, and what ends it. */
const tagged = (end: string): Omit<Template, 'stop'> => ({
  start: '',
  system: `<|system|>\n{content}${end}\n`,
  user: `<|user|>\n{content}${end}\n`,
  assistant: `<|assistant|>\n{content}${end}\n`,
  reply: '<|assistant|>\n',
});
const named = (role: string) => `<|im_start|>${role}\n{content}<|im_end|>\n`;
const headed = (role: string) => `<|start_header_id|>${role}<|end_header_id|>\n\n{content}<|eot_id|>`;
const turned = (role: string) => `<start_of_turn>${role}\n{content}<end_of_turn>\n`;

const templates: Record<TemplateName, Template> = {
  plain: {
    start: '',
    system: '{content}\n\n',
    user: 'User: {content}\n',
    assistant: 'Assistant: {content}\n',
    reply: 'Assistant:',
    stop: ['\nUser:'],
  },
  chatml: {
    start: '',
    system: named('system'),
    user: named('user'),
    assistant: named('assistant'),
    tool: named('tool'),
    reply: '<|im_start|>assistant\n',
    stop: ['<|im_end|>'],
  },
  'llama-3': {
    start: '<|begin_of_text|>',
    system: headed('system'),
    user: headed('user'),
    assistant: headed('assistant'),
    tool: headed('ipython'),
    reply: '<|start_header_id|>assistant<|end_header_id|>\n\n',
    stop: ['<|eot_id|>'],
  },
  gemma: {
    start: '<bos>',
    user: turned('user'),
    assistant: turned('model'),
    reply: '<start_of_turn>model\n',
    stop: ['<end_of_turn>'],
  },
  zephyr: { ...tagged('</s>'), stop: ['</s>'] },
  'phi-3': { ...tagged('<|end|>'), stop: ['<|end|>'] },
};

/** Which of the templates above a Jinja template seems to write; it is not run. */
export function looksLike(jinja: string): TemplateName | undefined {
  const marks: [string, TemplateName][] = [
    ['<|im_start|>', 'chatml'],
    ['<|start_header_id|>', 'llama-3'],
    ['<start_of_turn>', 'gemma'],
    ['<|end|>', 'phi-3'],
    ['<|user|>', 'zephyr'],
  ];
  return marks.find(([mark]) => jinja.includes(mark))?.[1];
}

export interface ChatPrompt {
  /** The prompt of these messages. Throws `invalid` for a role it has no place for, or a message that holds its markers. */
  write(messages: readonly ChatMessage[]): string;
  readonly stop: readonly string[];
  /** It writes the model's own tokens around the prompt itself. */
  readonly hasMarkers: boolean;
}

/** Tokens such as `<|im_end|>` that a template writes: a message that holds one would pass for another role's. */
const markersOf = (texts: readonly (string | undefined)[]): string[] => [
  ...new Set(texts.flatMap((text) => text?.match(/<[^\s<>{}]+>/g) ?? [])),
];

export function chatPrompt(given: NonNullable<TextGenerationOptions['chatTemplate']>): ChatPrompt {
  const template: Template = typeof given === 'string' ? templates[given] : { ...given, stop: [] };
  const { start, system, user, assistant, tool, reply, stop } = template;
  const markers = markersOf([start, system, user, assistant, tool, reply]);
  const one = ({ role, content }: ChatMessage, index: number): string => {
    const text = template[role];
    if (text === undefined)
      throw new AppError('invalid', `messages[${index}]: the chat template has no role "${role}"`);
    const marker = markers.find((marker) => content.includes(marker));
    if (marker !== undefined)
      throw new AppError(
        'invalid',
        `messages[${index}].content holds "${marker}", which the chat template writes itself`,
      );
    const [before, behind] = text.split('{content}');
    return before + content + behind;
  };
  return {
    write: (messages) => start + messages.map(one).join('') + reply,
    stop,
    hasMarkers: markers.length > 0,
  };
}
