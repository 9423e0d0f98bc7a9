// The guard before a Redis that keeps its connections and answers nothing: after some silences in a row commands fail at
// once, instead of making everyone wait for the timeout, until Redis answers a ping again.

import { StoreError } from './store.ts'

export type RedisCircuit = {
  /** Runs a step. @throws StoreError at once while Redis is silent, or with what the step threw as its cause */
  attempt<Value>(step: () => Promise<Value>): Promise<Value>
  close(): void
}

const silencesInARow = 3
const pingEveryMs = 250

export type CircuitParts = {
  ping(): Promise<unknown>
  /** Whether an error says that no answer came in time; every other one is an answer, or comes at once. */
  isSilence(error: unknown): boolean
  /** Hears when Redis fell silent and when it answered again. */
  observer: { silent(): void; answered(): void }
}

export const createRedisCircuit = ({ ping, isSilence, observer }: CircuitParts): RedisCircuit => {
  let silences = 0
  let timer: NodeJS.Timeout | undefined

  const pingSoon = (): void => {
    timer = setTimeout(async () => {
      try {
        await ping()
        timer = undefined
        silences = 0
        observer.answered()
      } catch {
        // Closed meanwhile: nobody is left to ask for.
        if (timer) pingSoon()
      }
    }, pingEveryMs).unref()
  }

  return {
    attempt: async step => {
      if (timer) throw new StoreError('Redis does not answer')
      try {
        const value = await step()
        silences = 0
        return value
      } catch (cause) {
        if (isSilence(cause)) {
          silences += 1
          if (silences >= silencesInARow && !timer) {
            observer.silent()
            pingSoon()
          }
        }
        throw cause instanceof StoreError
          ? cause
          : new StoreError(`Redis failed: ${cause instanceof Error ? cause.message : cause}`, { cause })
      }
    },
    close: () => {
      clearTimeout(timer)
      timer = undefined
    },
  }
}
