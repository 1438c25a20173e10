import { z } from 'zod'
import { isJsonObject, type JsonObject, type JsonValue, reject } from '../base/index.ts'
import { misfitOf } from './issue.ts'

/**
 * What a person decides about a proposed call. `override_args` replace the proposed arguments; `message` is what the model
 * reads of a denial.
 */
export const approvalSchema = z
  .strictObject({
    approved: z.boolean(),
    override_args: z.custom<JsonObject>(isJsonObject, { error: 'an object' }).optional(),
    message: z.string().optional(),
  })
  .refine((value) => value.approved || value.override_args === undefined, {
    path: ['override_args'],
    error: 'no override_args in a denial',
  })

export type Approval = z.infer<typeof approvalSchema>

/** @throws ThreadlogError `approval_invalid` with the path */
export function validateApproval(value: JsonValue): Approval {
  const parsed = approvalSchema.safeParse(value)
  if (parsed.success) return parsed.data
  throw reject('approval_invalid', 'The value is not an approval.', misfitOf(parsed.error))
}

const text = (limit: number) =>
  z
    .string()
    .trim()
    .min(1)
    .refine(within(limit), { error: `at most ${limit} characters` })
    // For its JSON Schema, which counts as `within` does.
    .meta({ maxLength: limit })

/** Limits count code points, as the states these values travel in are shared with implementations that do. */
function within(limit: number): (value: string) => boolean {
  return (value) => value.length <= limit || [...value].length <= limit
}

const distinct =
  <T>(key: (item: T) => string) =>
  (items: T[]) =>
    new Set(items.map(key)).size === items.length

const option = z.strictObject({ label: text(256), description: text(4096) })
type Option = z.infer<typeof option>

const question = z.strictObject({
  question: text(8192),
  header: text(12),
  options: z
    .array(option)
    .min(2)
    .max(4)
    .refine(
      distinct<Option>((o) => o.label),
      { error: 'labels that differ' },
    ),
  multiSelect: z
    .boolean()
    .optional()
    .transform((value = false) => value),
})

/** One question put to the user, texts trimmed. */
export type Question = z.infer<typeof question>

/** The arguments of a question: what the model is told of them, and what they are checked by. */
export const questionRequestSchema = z.strictObject({
  questions: z
    .array(question)
    .min(1)
    .max(4)
    .refine(
      distinct<Question>((q) => q.question),
      { error: 'question texts that differ' },
    ),
})

/**
 * The questions of a call's arguments (state spec §3.7).
 * @throws ThreadlogError `question_invalid`; the model is told, nobody is asked
 */
export function validateQuestionRequest(args: JsonValue): Question[] {
  const parsed = questionRequestSchema.safeParse(args)
  if (parsed.success) return parsed.data.questions
  throw reject('question_invalid', 'The arguments are not a list of questions.', misfitOf(parsed.error))
}

const answerText = text(8192)
const answer = z.strictObject({
  answers: z
    .record(z.string(), z.union([answerText, z.array(answerText).min(1).max(4)]))
    .refine((answers) => Object.keys(answers).length <= 4, { error: 'at most 4 answers' })
    .nullish(),
  response: text(65_536).nullish(),
})

/** What answers a question: chosen labels or free text by question, and a general response. */
export interface Answer {
  answers?: Record<string, string | string[]>
  response?: string
}

const refuse = (path: string, expected: string) =>
  reject('answer_invalid', 'The value does not answer the questions.', { path, expected })

/**
 * Checks an answer against its questions and normalises it: texts trimmed, an absent part left out (state spec §3.7).
 * @throws ThreadlogError `answer_invalid`
 */
export function validateAnswer(questions: readonly Question[], value: JsonValue): Answer {
  const parsed = answer.safeParse(value)
  if (!parsed.success) {
    const { path, expected } = misfitOf(parsed.error)
    // Below `answers` the path would quote question text.
    throw path.startsWith('$.answers.')
      ? refuse('$.answers', 'text or a list of 1 to 4 texts, each of 1 to 8192 characters')
      : refuse(path, expected)
  }
  const answers = trimmedKeys(parsed.data.answers ?? {})
  const response = parsed.data.response ?? undefined
  for (const key of Object.keys(answers))
    if (!questions.some((q) => q.question === key)) throw refuse('$.answers', 'only questions of this call')
  if (response === undefined) {
    const open = questions.findIndex((q) => !Object.hasOwn(answers, q.question))
    if (open >= 0) throw refuse('$.answers', `an answer to question ${open + 1}, or a response`)
  }
  for (const q of questions) if (Object.hasOwn(answers, q.question)) checkChoice(q, answers[q.question] as string | string[])
  return { ...(parsed.data.answers ? { answers } : {}), ...(response === undefined ? {} : { response }) }
}

function trimmedKeys(answers: Record<string, string | string[]>): Record<string, string | string[]> {
  return Object.fromEntries(Object.entries(answers).map(([key, item]) => [key.trim(), item]))
}

function checkChoice({ options, multiSelect }: Question, chosen: string | string[]): void {
  const texts = typeof chosen === 'string' ? [chosen] : chosen
  const labels = texts.filter((item) => options.some((o) => o.label === item)).length
  if (labels > 0 && labels < texts.length) throw refuse('$.answers', 'labels or free text in one answer, not both')
  if (labels > 1 && !multiSelect) throw refuse('$.answers', 'one label for a question with a single choice')
}

/** The same as plain JSON, for events and messages. */
export const answerJson = (value: Answer): JsonObject => ({ ...value })
