// Parses the body of a POST to /control into a change, or throws one sentence that names the field, the value given and
// what is allowed. Checks the whole body before any of it takes effect.

import { InputError } from '../src/errors.ts'
import { shortened } from '../src/outside-text.ts'
import { type FaultMode, faultModes } from './faults.ts'

/** Absent fields stay as they are. */
export type Change = {
  fault?: FaultMode
  /** For how many forecast calls the fault is injected; absent: for all. */
  times?: number
  latencyMs?: number
  /** ms since the epoch to stand still at; null for the real clock. */
  now?: number | null
  hold?: boolean
  reset?: boolean
}

type Field = { readonly allowed: string; read(value: unknown): unknown }

const wholeNumber = (from: number, to: number): Field => ({
  allowed: `a whole number from ${from} to ${to}`,
  read: value =>
    Number.isInteger(value) && Number(value) >= from && Number(value) <= to ? value : undefined,
})

const truth: Field = {
  allowed: 'true or false',
  read: value => (typeof value === 'boolean' ? value : undefined),
}

/** The fields that a POST may have, and the values that each allows. */
export const allowedChanges = (): Record<string, string> =>
  Object.fromEntries(Object.entries(fields).map(([name, { allowed }]) => [name, allowed]))

const fields: Readonly<Record<keyof Change, Field>> = {
  fault: {
    allowed: faultModes.join(', '),
    read: value => faultModes.find(name => name === value),
  },
  times: wholeNumber(1, 1_000_000_000),
  latencyMs: wholeNumber(0, 600_000),
  now: {
    allowed: 'an instant such as 2026-11-21T06:00:00Z, or null for the real clock',
    read: value => (value === null ? null : readInstant(value)),
  },
  hold: truth,
  reset: truth,
}

/** @throws InputError */
export const readChange = (text: string): Change => {
  const given = parse(text)
  const change: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(given)) {
    if (name === 'mood') throw new InputError('The field mood of /control is now called fault.')
    if (!Object.hasOwn(fields, name))
      throw new InputError(
        `${cut(name)} is no field of /control; allowed: ${Object.keys(fields).join(', ')}.`,
      )
    const { allowed, read } = fields[name as keyof Change]
    const known = read(value)
    if (known === undefined)
      throw new InputError(`${name} is ${cut(JSON.stringify(value))}; allowed: ${allowed}.`)
    change[name] = known
  }
  if (change.times !== undefined && change.fault === undefined)
    throw new InputError(`times is ${change.times} without a fault; allowed: together with fault.`)
  return change
}

const readInstant = (value: unknown): number | undefined => {
  if (typeof value !== 'string') return undefined
  // Without a zone an instant would depend on where the simulator runs.
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$/.test(value)) return undefined
  const instant = Date.parse(value)
  return Number.isNaN(instant) ? undefined : instant
}

const parse = (text: string): object => {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    throw new InputError(`The body is ${cut(JSON.stringify(text))}; allowed: a JSON object.`)
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    throw new InputError(`The body is ${cut(text)}; allowed: a JSON object.`)
  return json
}

const cut = (text: string): string => shortened(text, 80)
