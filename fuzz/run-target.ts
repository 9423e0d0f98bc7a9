// Runs the cases of one target with fast-check, batch by batch, until its time is over. Checks the process after every batch. The
// first fault ends the search: fast-check leaves out cases of its batch, and parts of cases, for as long as the same rule breaks.

import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { cut, Fault } from './fault.ts'
import { checkHealth } from './system/health.ts'
import { startSystem } from './system/system.ts'
import type { Target } from './target.ts'

/** `path`: fast-check's path to the one batch that is to be run. */
export type Plan = { readonly seed: number; readonly seconds: number; readonly path?: string }

/** What broke a rule: the smallest batch that was found. `path` is undefined for what broke at the end. */
type Found = Readonly<Record<'rule' | 'detail' | 'kind' | 'printed', string>> & {
  readonly path: string | undefined
}

export type Ran = {
  readonly target: Target
  readonly cases: number
  readonly seconds: number
  readonly found: Found | undefined
  /** How many cases of each kind. */
  readonly kinds: ReadonlyMap<string, number>
}

const maxShrinkMs = 15_000
// The gateway buffers the lines of its access log for a quarter of a second.
const logWrittenWithinMs = 400

const faultIn = (running: Promise<void>): Promise<Fault | undefined> =>
  running.then(
    () => undefined,
    (error: unknown) =>
      error instanceof Fault ? error : new Fault("the case can't be carried through", error),
  )

/** @throws Error when the system does not start */
export const runTarget = async (
  target: Target,
  { seed, seconds, path }: Plan,
  onBatch: (cases: number, secondsLeft: number) => void = () => {},
): Promise<Ran> => {
  const system = await startSystem(target.setting)
  try {
    let session = await target.open(system)
    // From here on the gateway has the weather of the good request.
    await checkHealth(system)
    const kinds = new Map<string, number>()
    const started = performance.now()
    let deadline = started + seconds * 1_000
    let [cases, batches, searchedMs] = [0, 0, 0]
    let first: Fault | undefined
    /** The case that broke a rule, or all of a batch that did so together. */
    let culprits: readonly unknown[] = []
    let smallest: readonly unknown[] = []

    const runBatch = async (batch: readonly unknown[]): Promise<Fault | undefined> => {
      const found: { readonly fault: Fault; readonly given: unknown }[] = []
      const left = batch.values()
      const worker = async (): Promise<void> => {
        for (const given of left) {
          const fault = await faultIn(session.run(given))
          if (fault) found.push({ fault, given })
          if (first) continue
          cases += 1
          const kind = target.kindOf(given)
          kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
        }
      }
      await Promise.all(Array.from({ length: target.atOnce }, worker))
      if (found.length > 0) await system.gateway().endsSoon()
      if (first?.rule.includes('log')) await pause(logWrittenWithinMs)
      const health = await faultIn(checkHealth(system))
      // What a case met while its process ended says nothing about the case.
      const [broke] = system.gateway().isAlive() ? found : []
      const fault = broke?.fault ?? health
      if (fault) {
        await session.close?.()
        if (health) await system.restart()
        session = await target.open(system)
        culprits = broke ? [broke.given] : batch
      }
      return fault
    }

    const examples = (target.first ?? []).map((given): [unknown[]] => [[given]])
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
    const atEnd = await faultIn(system.gateway().stop())
    if (errorInstance && !(errorInstance instanceof Fault || first)) throw errorInstance
    // A gateway that does not start again hides no fault that was found before.
    const fault = errorInstance instanceof Fault ? errorInstance : (first ?? atEnd)
    const found = fault && {
      rule: fault.rule,
      detail: fault.detail,
      kind: smallest.length === 1 ? target.kindOf(smallest[0]) : `${smallest.length} cases together`,
      printed: cut(smallest.map(given => target.print(given)).join(' | '), 600),
      path: counterexamplePath ?? undefined,
    }
    return { target, cases, seconds: searchedMs / 1_000, found, kinds }
  } finally {
    await system.close()
  }
}
