// The interface of a fuzz target: a part of the product under attack, with the cases that fast-check generates and shrinks, and how
// they run against a system. run-target.ts knows targets by this type alone.

import fc, { type Arbitrary } from 'fast-check'
import type { System, SystemSetting } from './system/system.ts'

export const targetNames = [
  'sockets',
  'streams',
  'parameters',
  'provider',
  'configuration',
  'traffic',
] as const
export type TargetName = (typeof targetNames)[number]

/** Declared with methods, so that the runner can hold targets of any case type. */
export type Target<Case = unknown> = {
  readonly name: TargetName
  /** The rule that holds for every case, for the table. */
  readonly checks: string
  /** Its share of the time of a run, in proportion to the others. */
  readonly share: number
  /** Cases that run before the process is checked. */
  readonly batches: Arbitrary<readonly Case[]>
  /** Cases that every run begins with, each alone, beside its time: what is too dear to come up often. */
  readonly first?: readonly Case[]
  /** How many cases of a batch run concurrently. */
  readonly atOnce: number
  readonly setting: SystemSetting
  /** The kind of case, in a word or two. */
  kindOf(given: Case): string
  /** The printed case, without keys; the runner escapes and shortens it. */
  print(given: Case): string
  open(system: System): Promise<Session<Case>>
}

/** A target on a running system. */
export type Session<Case = unknown> = {
  /** @throws Fault */
  run(given: Case): Promise<void>
  close?(): Promise<void>
}

/**
 * Batches of up to so many cases.
 * @param alone cases that check the process as a whole, or cost as much as a batch: one of `every` batches is one of them
 */
export const batchesOf = <Case>(
  cases: Arbitrary<Case>,
  most: number,
  alone?: { readonly of: Arbitrary<Case>; readonly every: number },
): Arbitrary<readonly Case[]> => {
  const together = several(cases, 1, most)
  return alone ? weighted([alone.every - 1, together], [1, alone.of.map(one => [one])]) : together
}

/** A place in whatever there is, from 0 up to but not including 1: it fits texts and lists of any length. */
export const share: Arbitrary<number> = fc.nat(2 ** 20 - 1).map(part => part / 2 ** 20)

export const indexAt = (length: number, place = 0): number =>
  Math.max(0, Math.min(length - 1, Math.floor(place * length)))
export const itemAt = <Item>(items: readonly Item[], place = 0): Item | undefined =>
  items[indexAt(items.length, place)]

/** True so often in a hundred times. */
export const chance = (percent: number): Arbitrary<boolean> =>
  weighted([100 - percent, fc.constant(false)], [percent, fc.constant(true)])

/** Bytes as a Latin-1 text. */
export const noise = (least: number, most: number): Arbitrary<string> =>
  fc
    .uint8Array({ minLength: least, maxLength: most, size: 'max' })
    .map(bytes => Buffer.from(bytes).toString('latin1'))

/** The words of a text that have blanks between them. */
export const words = (text: string): string[] => text.trim().split(/\s+/)
/** The parts of a text between its bars; a line may end behind one. */
export const parts = (text: string): string[] => text.split(/\|(?:\n +)?/)

export const pick = fc.constantFrom
export const upTo = (min: number, max: number): Arbitrary<number> => fc.integer({ min, max })
/** One of some, each as often as its number says. */
export const weighted = <Value>(...of: (readonly [number, Arbitrary<Value>])[]): Arbitrary<Value> =>
  fc.oneof(...of.map(([weight, arbitrary]) => ({ weight, arbitrary })))
export const joined = (...all: (Arbitrary<string> | string)[]): Arbitrary<string> =>
  fc
    .tuple(...all.map(part => (typeof part === 'string' ? fc.constant(part) : part)))
    .map(made => made.join(''))
export const repeated = (text: string, least: number, most: number): Arbitrary<string> =>
  upTo(least, most).map(times => text.repeat(times))
/** A list that is as long at the beginning of a run as later on. */
export const several = <Item>(of: Arbitrary<Item>, least: number, most: number): Arbitrary<Item[]> =>
  fc.array(of, { minLength: least, maxLength: most, size: 'max' })
