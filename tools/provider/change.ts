// Reads the body of a POST to /control into a change, or throws one sentence that names the field, the value given and
// what is allowed. Checks the whole body before any of it takes effect.

import { InputError } from 'abohawa/common/errors.ts'
import { shortened } from 'abohawa/common/outside-text.ts'
import { z } from 'zod'
import { type FaultMode, faultModes } from './faults.ts'

const wholeNumber = (from: number, to: number) =>
  z
    .int(`a whole number from ${from} to ${to}`)
    .min(from, `a whole number from ${from} to ${to}`)
    .max(to, `a whole number from ${from} to ${to}`)

// The error of each field is what it allows.
const fields = {
  fault: z.custom<FaultMode>(value => faultModes.some(name => name === value), faultModes.join(', ')),
  /** For how many forecast calls the fault is injected; absent: for all. */
  times: wholeNumber(1, 1_000_000_000),
  latencyMs: wholeNumber(0, 600_000),
  /** The instant to stand still at; null for the real clock. Without a zone it would depend on where the simulator runs. */
  now: z.iso
    .datetime({ offset: true, error: 'an instant such as 2026-11-21T06:00:00Z, or null for the real clock' })
    .transform(text => Date.parse(text))
    .nullable(),
  hold: z.boolean('true or false'),
  reset: z.boolean('true or false'),
}

const schema = z.strictObject(fields).partial()

/** Absent fields stay as they are. */
export type Change = z.infer<typeof schema>

/** @throws InputError */
export const readChange = (text: string): Change => {
  const given = parse(text)
  const { data, error } = schema.safeParse(given)
  const issue = error?.issues[0]
  if (issue?.code === 'unrecognized_keys')
    throw new InputError(
      `${cut(issue.keys[0] ?? '')} is no field of /control; allowed: ${Object.keys(fields).join(', ')}.`,
    )
  if (issue) {
    const name = String(issue.path[0])
    throw new InputError(`${name} is ${cut(JSON.stringify(given[name]))}; allowed: ${issue.message}.`)
  }
  if (data?.times !== undefined && data.fault === undefined)
    throw new InputError(`times is ${data.times} without a fault; allowed: together with fault.`)
  return data ?? {}
}

const parse = (text: string): Record<string, unknown> => {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    throw new InputError(`The body is ${cut(JSON.stringify(text))}; allowed: a JSON object.`)
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    throw new InputError(`The body is ${cut(text)}; allowed: a JSON object.`)
  return json as Record<string, unknown>
}

const cut = (text: string): string => shortened(text, 80)
