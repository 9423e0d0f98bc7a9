// Runs the cases of one target with fast-check, batch by batch, until its time is over. Checks the process after every batch. The
// first fault ends the search: fast-check leaves out cases of its batch, and parts of cases, for as long as the same rule breaks.

import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { cut, Fault } from './fault.ts'
import { checkHealth } from './system/health.ts'
import { startSystem } from './system/system.ts'
import type { Target } from './target.ts'

export type Plan = {
  readonly seed: number
  readonly seconds: number
  /** Runs this batch alone: fast-check's path to it. */
  readonly path?: string
}

/** What broke a rule: the smallest batch that was found. */
export type Found = {
  readonly rule: string
  readonly detail: string
  readonly kind: string
  readonly printed: string
  /** Fast-check's path to the batch; undefined for what broke at the end. */
  readonly path: string | undefined
}

export type Ran = {
  readonly target: Target
  readonly cases: number
  readonly seconds: number
  readonly found: Found | undefined
  /** How many cases of each kind. */
  readonly kinds: ReadonlyMap<string, number>
  /** What could not be tested, in sentences. */
  readonly notes: readonly string[]
}

const maxShrinkMs = 15_000
// The gateway buffers the lines of its access log for a quarter of a second.
const logWrittenWithinMs = 400
const diesWithinMs = 300

/** @throws Error when the system does not start */
export const runTarget = async (
  target: Target,
  { seed, seconds, path }: Plan,
  onBatch: (cases: number, secondsLeft: number) => void = () => {},
): Promise<Ran> => {
  const system = await startSystem(target.setting)
  try {
    let session = await target.open(system)
    const notes = new Set(session.notes)
    // From here on the gateway has the weather of the good request.
    await checkHealth(system)
    const kinds = new Map<string, number>()
    const started = performance.now()
    let deadline = started + seconds * 1_000
    let cases = 0
    let first: Fault | undefined
    let searchedMs = 0
    /** The case that broke a rule, or all of a batch that did so together. */
    let culprits: readonly unknown[] = []
    let smallest: readonly unknown[] = []

    const faultOf = async (given: unknown): Promise<Fault | undefined> => {
      try {
        await session.run(given)
      } catch (error) {
        if (error instanceof Fault) return error
        // A case that can't be completed is no fault by itself: the check of the process says why.
        await pause(diesWithinMs)
        return system.gateway().isAlive() ? new Fault("the case can't be carried through", error) : undefined
      }
    }
    const runBatch = async (batch: readonly unknown[]): Promise<Fault | undefined> => {
      const found: { readonly fault: Fault; readonly given: unknown }[] = []
      const left = batch.values()
      const worker = async (): Promise<void> => {
        for (const given of left) {
          const fault = await faultOf(given)
          if (fault) found.push({ fault, given })
          if (first) continue
          cases += 1
          const kind = target.kindOf(given)
          kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
        }
      }
      await Promise.all(Array.from({ length: target.atOnce }, worker))
      if (first?.rule.includes('log')) await pause(logWrittenWithinMs)
      const health = await checkHealth(system).then(
        () => undefined,
        (error: Fault) => error,
      )
      // What a case met while its process ended says nothing about the case.
      const [broke] = system.gateway().isAlive() ? found : []
      const fault = broke?.fault ?? health
      if (fault) {
        await session.close?.()
        if (health) await system.restart()
        session = await target.open(system)
        for (const note of session.notes ?? []) notes.add(note)
        culprits = broke ? [broke.given] : batch
      }
      return fault
    }

    const examples = (target.first ?? []).map((given): [unknown[]] => [[given]])
    let batches = 0
    const property = fc.asyncProperty(target.batches, async batch => {
      const isOver =
        path === undefined ? batches > examples.length && performance.now() > deadline : batches > 0
      if (isOver) throw new fc.PreconditionFailure(true)
      if (batches++ === examples.length) deadline = performance.now() + seconds * 1_000
      let fault = await runBatch(batch)
      if (fault?.mayBeSlowness) fault = await runBatch(batch)
      onBatch(cases, Math.max(0, deadline - performance.now()) / 1_000)
      if (!fault || (first && fault.rule !== first.rule)) return
      if (!first) {
        searchedMs = performance.now() - started
        deadline = performance.now() + maxShrinkMs
      }
      first ??= fault
      smallest = culprits
      throw fault
    })
    const { counterexamplePath, errorInstance } = await fc.check(property, {
      seed: seed | 0,
      numRuns: 2 ** 31 - 1,
      // Batches as long at the beginning as later on.
      unbiased: true,
      examples,
      ...(path !== undefined && { path }),
    })
    if (!first) searchedMs = performance.now() - started
    await session.close?.()
    const atEnd = await system.stop().then(
      () => undefined,
      (error: Fault) => error,
    )
    const fault = errorInstance instanceof Fault ? errorInstance : atEnd
    const found = fault && {
      rule: fault.rule,
      detail: fault.detail,
      kind: smallest.length === 1 ? target.kindOf(smallest[0]) : `${smallest.length} cases together`,
      printed: cut(smallest.map(given => target.print(given)).join(' | '), 600),
      path: counterexamplePath ?? undefined,
    }
    return { target, cases, seconds: searchedMs / 1_000, found, kinds, notes: [...notes] }
  } finally {
    await system.close()
  }
}
