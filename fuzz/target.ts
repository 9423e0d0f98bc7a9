// The interface of a fuzz target: a part of the product under attack, with how its cases are generated, printed, shrunk and
// run against a system. run-target.ts knows targets by this type alone.

import type { Finding } from './finding.ts'
import type { Random } from './random.ts'
import type { System, SystemSetting } from './system/system.ts'

export const targetNames = [
  'sockets',
  'pipelines',
  'operators',
  'parameters',
  'provider',
  'entries',
  'quotas',
  'quotas-sentinel',
  'quotas-cluster',
  'configuration',
  'traffic',
  'streams',
  'readers',
] as const
export type TargetName = (typeof targetNames)[number]

/** Declared as methods, so that the runner can hold targets of any case type. */
export type Target<Case = unknown> = {
  readonly name: TargetName
  /** The rule that holds for every case, for the table. */
  readonly checks: string
  /** Its share of the time of a run, in proportion to the others. */
  readonly share: number
  /** The cases per batch, after which the process is checked, and how many of them run concurrently. */
  readonly batch: number
  readonly atOnce: number
  readonly setting: SystemSetting
  /** Pure: equal streams and numbers give equal cases. */
  generate(random: Random, number: number): Case
  /** The kind of case, in a word or two; faults are grouped by it. */
  shapeOf(given: Case): string
  /** Whether it must run alone, because it checks the process as a whole. */
  isAlone(given: Case): boolean
  /** Smaller variants of a case, the smallest first; may be empty. */
  smaller(given: Case): Iterable<Case>
  /** The printed case, without keys; the runner escapes and shortens it. */
  print(given: Case): string
  open(system: System): Promise<Session<Case>>
}

/** A target on a running system. */
export type Session<Case = unknown> = {
  /** What cannot be tested here, in sentences. */
  readonly notes?: readonly string[]
  run(given: Case): Promise<Finding[]>
  close(): Promise<void>
}
