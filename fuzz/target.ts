// What a target of the fuzzer is: a part of the product under attack, how its cases are made, run, judged and made
// smaller. The runner (run-target.ts) knows no more of it than stands here.

import type { Random } from './random.ts'
import type { System, SystemSetting } from './system/system.ts'

export const targetNames = ['sockets', 'pipelines', 'parameters', 'provider', 'entries', 'quotas'] as const
export type TargetName = (typeof targetNames)[number]

/** A promise that was broken: its name, the same for every case that breaks it, and what was seen. */
export type Finding = {
  readonly rule: string
  readonly detail: string
  /** Whether a machine that is busy may be the reason, so that it counts only when it happens again. */
  readonly mayBeSlowness?: boolean
}

/** Cases against a system that runs. Methods, so that the runner may hold sessions of any kind of case. */
export type Session<Case> = {
  /** What can't be tried here, in sentences. */
  readonly notes?: readonly string[]
  /** Pure: equal streams and numbers give equal cases. */
  generate(random: Random, number: number): Case
  /** The kind of case, in a word or two; faults are told apart by it. */
  shapeOf(given: Case): string
  /** Whether nothing else may run beside it, because it looks at the process as a whole. */
  isAlone(given: Case): boolean
  run(given: Case): Promise<Finding[]>
  /** Cases that are a little smaller, the smallest first; may be none. */
  smaller(given: Case): Iterable<Case>
  /** In plain ASCII, without keys. */
  print(given: Case): string
  close(): Promise<void>
}

export type Target = {
  readonly name: TargetName
  /** What holds for every case, a sentence for the table. */
  readonly checks: string
  /** Cases of a batch, after which the process is looked at, and how many of them run at once. */
  readonly batch: number
  readonly atOnce: number
  readonly setting: SystemSetting
  open(system: System): Promise<Session<unknown>>
}

/** Findings of a list that may hold none. */
export const finding = (rule: string, detail: string): Finding => ({ rule, detail: cut(detail, 300) })

/** Plain ASCII of at most so many characters. */
export const cut = (text: string, most: number): string => {
  const plain = text.replaceAll(/[^\x20-\x7e]/gu, escaped)
  return plain.length <= most ? plain : `${plain.slice(0, most)}… (${plain.length} characters)`
}

const escaped = (character: string): string => {
  if (character === '\r') return '\\r'
  if (character === '\n') return '\\n'
  const code = character.codePointAt(0) ?? 0
  return code < 256 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`
}
