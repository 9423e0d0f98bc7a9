// Runs the cases of one target, batch by batch, until its time is over. Checks the process after every batch, finds the case
// that made it unhealthy, and shrinks failing cases. Prints nothing.

import { setTimeout as pause } from 'node:timers/promises'
import { cut, type Finding } from './finding.ts'
import { minimised } from './minimise.ts'
import { createRandom } from './random.ts'
import { checkHealth } from './system/health.ts'
import { type System, startSystem } from './system/system.ts'
import type { Session, Target, TargetName } from './target.ts'

/** One broken rule of one target, with the first case that broke it. */
export type Fault = {
  readonly target: TargetName
  readonly seed: number
  /** The number of the case, or the first and last number where only all of them together broke the rule. */
  readonly cases: readonly [first: number, last: number]
  readonly shape: string
  readonly rule: string
  readonly detail: string
  /** The case as generated, and the smallest that still fails where one was found. */
  readonly printed: string
  readonly smallest: string | undefined
  /** How many cases failed in this way. */
  times: number
}

export type Ran = {
  readonly target: Target
  readonly cases: number
  readonly seconds: number
  readonly faults: readonly Fault[]
  /** How many cases of each shape. */
  readonly shapes: ReadonlyMap<string, number>
  /** What could not be tested, in sentences. */
  readonly notes: readonly string[]
}

export type Plan = {
  readonly seed: number
  readonly seconds: number
  /** Runs only these cases, first and last; otherwise all from 0 on until the time is over. */
  readonly cases?: readonly [first: number, last: number]
}

export type OnProgress = (cases: number, secondsLeft: number, faults: number) => void

/** @throws Error when the system does not start */
export const runTarget = async (target: Target, plan: Plan, onProgress: OnProgress): Promise<Ran> => {
  const system = await startSystem(target.setting)
  try {
    const session = await target.open(system)
    const started = performance.now()
    const [first, last] = plan.cases ?? [0, Number.POSITIVE_INFINITY]
    const secondsLeft = () => plan.seconds - (performance.now() - started) / 1000
    const run = createRun(target, plan, system, session, (cases, faults) =>
      onProgress(cases, Math.max(0, secondsLeft()), faults),
    )
    const isOver = () => plan.cases === undefined && secondsLeft() <= 0
    for (let from = first; from <= last && !isOver(); from += target.batch)
      await run.batch(from, Math.min(from + target.batch - 1, last))
    await run.end()
    return { target, seconds: (performance.now() - started) / 1000, ...run.results() }
  } finally {
    await system.close()
  }
}

const onePerRule = (found: readonly Finding[]): Finding[] =>
  found.filter(({ rule }, i) => found.findIndex(other => other.rule === rule) === i)

const maxFaults = 50
const maxPinningMs = 15_000
// The gateway buffers access-log lines for a quarter of a second.
const logWrittenWithinMs = 400
const diesWithinMs = 300
const isOfLog = (rule: string): boolean => rule.includes('log')

const createRun = (
  target: Target,
  { seed }: Plan,
  system: System,
  opened: Session,
  onCase: (cases: number, faults: number) => void,
) => {
  const faults: Fault[] = []
  const shapes = new Map<string, number>()
  const pinned = new Map<string, number>()
  const notes = new Set(opened.notes)
  let session = opened
  let count = 0

  const caseOf = (number: number): unknown => target.generate(createRandom(seed, target.name, number), number)

  const restart = async (): Promise<void> => {
    await session.close()
    await system.restart()
    session = await target.open(system)
    for (const note of session.notes ?? []) notes.add(note)
  }

  const note = async (number: number, found: readonly Finding[], last = number): Promise<void> => {
    const given = caseOf(number)
    const shape = last === number ? target.shapeOf(given) : `${last - number + 1} cases together`
    for (const { rule, detail } of onePerRule(found)) {
      const before = faults.find(fault => fault.rule === rule && fault.shape === shape)
      if (before) before.times += 1
      if (before || faults.length >= maxFaults) continue
      const fault = {
        target: target.name,
        seed,
        cases: [number, last] as const,
        shape,
        rule,
        detail,
        times: 1,
      }
      const run = async (one: unknown) => (system.gateway().isAlive() ? session.run(one).catch(() => []) : [])
      const isMinimisable = last === number && system.gateway().isAlive()
      const smallest = isMinimisable ? await minimised(target, given, rule, run) : undefined
      faults.push({
        ...fault,
        printed: cut(target.print(given), 600),
        smallest: smallest && cut(smallest, 400),
      })
    }
  }

  /** Findings of one case. A case that cannot be completed is no finding by itself: the process check reports why. */
  const runOne = async (given: unknown): Promise<Finding[]> => {
    try {
      const found = await session.run(given)
      // A single timeout may be due to a busy machine.
      if (!found.some(({ mayBeSlowness }) => mayBeSlowness)) return found
      return found.filter(({ mayBeSlowness }) => !mayBeSlowness).concat((await again(given)).filter(isSlow))
    } catch (error) {
      await pause(diesWithinMs)
      if (system.gateway().isAlive())
        return [{ rule: 'the case can not be carried through', detail: `${error}` }]
      return []
    }
  }
  const again = async (given: unknown): Promise<Finding[]> => session.run(given)
  const isSlow = ({ mayBeSlowness }: Finding): boolean => mayBeSlowness === true

  const counted = (shape: string): void => {
    count += 1
    shapes.set(shape, (shapes.get(shape) ?? 0) + 1)
    onCase(count, faults.length)
  }

  const runTogether = async (
    numbers: readonly number[],
    isFirstTime: boolean,
  ): Promise<Map<number, Finding[]>> => {
    const found = new Map<number, Finding[]>()
    let next = 0
    const worker = async (): Promise<void> => {
      for (let i = next++; i < numbers.length; i = next++) {
        const number = numbers[i] as number
        const given = caseOf(number)
        found.set(number, await runOne(given))
        if (isFirstTime) counted(target.shapeOf(given))
      }
    }
    await Promise.all(Array.from({ length: target.atOnce }, worker))
    return found
  }

  /** What is wrong with the process now; an unhealthy process is replaced. */
  const illness = async (): Promise<Finding[]> => {
    const found = await checkHealth(system)
    if (found.some(({ rule }) => !isOfLog(rule))) await restart()
    return onePerRule(found)
  }

  /** Runs cases concurrently and checks the process after them; returns whether it is unhealthy. */
  const runPart = async (numbers: readonly number[]): Promise<void> => {
    if (numbers.length === 0) return
    const found = await runTogether(numbers, true)
    const died = !system.gateway().isAlive()
    const unwell = await illness()
    // Findings made while the process was ending say nothing about the case.
    if (!died) for (const [number, findings] of found) if (findings.length > 0) await note(number, findings)
    for (const one of unwell) await pinDown(numbers, one)
  }

  /**
   * Bisects a batch that made the process unhealthy until one case remains that does so by itself. If only several of them
   * together do, the finding names the first and the last. A finding that a busy machine may explain must happen again.
   */
  const pinDown = async (numbers: readonly number[], seen: Finding): Promise<void> => {
    const { rule, mayBeSlowness } = seen
    const before = faults.find(fault => fault.rule === rule)
    if (before) before.times += 1
    const deadline = performance.now() + maxPinningMs
    const times = pinned.get(rule) ?? 0
    pinned.set(rule, times + 1)
    if (times > 0) return
    const isBroken = async (some: readonly number[]): Promise<Finding | undefined> => {
      if (performance.now() > deadline) return undefined
      await runTogether(some, false)
      await pause(logWrittenWithinMs)
      return (await illness()).find(one => one.rule === rule)
    }
    let left = numbers
    let last = mayBeSlowness ? await isBroken(numbers) : seen
    while (last && left.length > 1) {
      const half = left.slice(0, Math.ceil(left.length / 2))
      const inHalf = await isBroken(half)
      const found = inHalf ?? (await isBroken(left.slice(half.length)))
      if (!found) break
      left = inHalf ? half : left.slice(half.length)
      last = found
    }
    if (last) await note(left[0] ?? 0, [last], left.at(-1))
  }

  return {
    results: () => ({ cases: count, faults, shapes, notes: [...notes] }),
    batch: async (first: number, last: number): Promise<void> => {
      const numbers = Array.from({ length: last - first + 1 }, (_, i) => first + i)
      const alone = numbers.filter(number => target.isAlone(caseOf(number)))
      await runPart(numbers.filter(number => !alone.includes(number)))
      for (const number of alone) await runPart([number])
    },
    end: async (): Promise<void> => {
      await session.close()
      const found = await system.stop()
      if (found.length > 0) await note(0, found, Math.max(0, count - 1))
    },
  }
}
