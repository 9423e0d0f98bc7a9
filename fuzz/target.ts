// The interface of a fuzz target: a part of the product under attack, with how its cases are generated, printed, shrunk and
// run against a system. run-target.ts knows targets by this type alone.

import type { Finding } from './finding.ts'
import type { Random } from './random.ts'
import type { System, SystemSetting } from './system/system.ts'

export const targetNames = ['sockets', 'pipelines', 'parameters', 'provider', 'entries', 'quotas'] as const
export type TargetName = (typeof targetNames)[number]

/** Methods, so that the runner may hold targets of any kind of case. */
export type Target<Case = unknown> = {
  readonly name: TargetName
  /** What holds for every case, for the table. */
  readonly checks: string
  /** How much of the time of a run it gets, in proportion to the others. */
  readonly share: number
  /** Cases of a batch, after which the process is looked at, and how many of them run at once. */
  readonly batch: number
  readonly atOnce: number
  readonly setting: SystemSetting
  /** Pure: equal streams and numbers give equal cases. */
  generate(random: Random, number: number): Case
  /** The kind of case, in a word or two; faults are told apart by it. */
  shapeOf(given: Case): string
  /** Whether nothing else may run beside it, because it looks at the process as a whole. */
  isAlone(given: Case): boolean
  /** Cases that are a little smaller, the smallest first; may be none. */
  smaller(given: Case): Iterable<Case>
  /** Without keys; the runner escapes and cuts it. */
  print(given: Case): string
  open(system: System): Promise<Session<Case>>
}

/** A target on a system that runs. */
export type Session<Case = unknown> = {
  /** What can't be tried here, in sentences. */
  readonly notes?: readonly string[]
  run(given: Case): Promise<Finding[]>
  close(): Promise<void>
}
