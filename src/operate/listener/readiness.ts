// Whether this process should be sent traffic. A store that is away is reported as a detail and does not take the process
// out: what is cached can still be served, and all instances would go at once.

import { setTimeout as pause } from 'node:timers/promises'
import { messageOf } from '../../common/errors.ts'

type Phase = 'starting' | 'ready' | 'draining'

/** The answer of /readyz. */
type ReadinessReport = { readonly status: Phase; readonly detail: Readonly<Record<string, string>> }

export type Readiness = {
  phase: Phase
  report(): Promise<ReadinessReport>
}

const notAvailable = 'not available'
// Probes share one report, so a check that hangs must not hold up all that come after it.
const checkWithinMs = 2_000

/** @param details named checks; each gives a word or throws */
export const createReadiness = (details: Readonly<Record<string, () => Promise<string>>>): Readiness => {
  const readiness: Readiness = {
    phase: 'starting',
    report: async () => ({
      status: readiness.phase,
      detail: Object.fromEntries(
        await Promise.all(Object.entries(details).map(async ([name, check]) => [name, await bounded(check)])),
      ),
    }),
  }
  return readiness
}

const bounded = async (check: () => Promise<string>): Promise<string> => {
  const over = new AbortController()
  try {
    return await Promise.race([
      check(),
      pause(checkWithinMs, notAvailable, { ref: false, signal: over.signal }),
    ])
  } catch (error) {
    return `${notAvailable}: ${messageOf(error)}`
  } finally {
    over.abort()
  }
}
