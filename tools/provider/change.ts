// Reads the body of POST /control. The whole body is checked before any of it takes effect.

import { InputError } from 'abohawa/common/errors.ts'
import { shortened } from 'abohawa/common/outside-text.ts'
import { z } from 'zod'
import { type FaultMode, faultModes } from './faults.ts'

const integer = (from: number, to: number) => {
  const expected = `an integer from ${from} to ${to}`
  return z.int(expected).min(from, expected).max(to, expected)
}

// The error of each field is what it must be.
const fields = {
  fault: z.custom<FaultMode>(
    value => faultModes.some(name => name === value),
    `one of ${faultModes.join(', ')}`,
  ),
  /** The number of forecast calls with the fault; all if not given. */
  times: integer(1, 1_000_000_000),
  latencyMs: integer(0, 600_000),
  /** Stops the clock at this instant; null for the real clock. */
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
      `the fields of /control are ${Object.keys(fields).join(', ')}, got ${cut(issue.keys[0] ?? '')}`,
    )
  if (issue) {
    const name = String(issue.path[0])
    throw new InputError(`${name} must be ${issue.message}, got ${cut(JSON.stringify(given[name]))}`)
  }
  if (data?.times !== undefined && data.fault === undefined) throw new InputError('times requires fault')
  return data ?? {}
}

const parse = (text: string): Record<string, unknown> => {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    throw new InputError(`the body must be a JSON object, got ${cut(JSON.stringify(text))}`)
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    throw new InputError(`the body must be a JSON object, got ${cut(text)}`)
  return json as Record<string, unknown>
}

const cut = (text: string): string => shortened(text, 80)
