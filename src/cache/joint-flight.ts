// One load per key over the whole fleet: whoever begins it holds the key by short, prolonged holds; the others wait to
// hear how it went. A holder that dies lets go by itself. Without the store that carries this everyone goes alone:
// that costs a load per instance, and never an answer.

import { AbohawaError, messageOf } from '../errors.ts'
import { safeText } from '../outside-text.ts'
import type { FlightStore } from '../stores/store.ts'
import { retryAtOf } from './failures.ts'

export type JointFlight = {
  /**
   * The result of `load`, or what another instance's load left for `arrived` to find; `joined` says which.
   * @throws FailedElsewhere when the load that was waited for failed
   */
  run<Result>(
    key: string,
    steps: {
      /** @param token of the flight, to write with; none when this instance goes alone */
      load(token: number | undefined): Promise<Result>
      arrived(): Promise<Result | undefined>
    },
  ): Promise<{ result: Result; joined: boolean }>
  close(): void
}

/** The load of another instance failed, with its code and its pause. */
class FailedElsewhere extends AbohawaError {
  override name = 'FailedElsewhere'
  readonly retryAt: number | undefined

  constructor({ code, message, retryAt }: FailureNews) {
    super(safeText(code, 60), safeText(message, 300))
    this.retryAt = retryAt
  }
}

type FailureNews = { code: string; message: string; retryAt?: number }

// An end that is told to all in a word: bytes were written.
const landed = ''
// How much longer than a hold one waits for the news of its end.
const graceMs = 20

export const createJointFlight = (
  { store, holdForMs }: { store: FlightStore; holdForMs: number },
  failed: (error: unknown) => void,
): JointFlight => {
  const waiting = new Map<string, Set<(news: string | undefined) => void>>()
  const stopListening = store.onFlightEnd((key, news) => {
    // When news may have been missed, everyone looks for themselves.
    const told = key === null ? [...waiting.values()] : [waiting.get(key) ?? new Set()]
    for (const waiters of told) for (const wake of [...waiters]) wake(key === null ? undefined : news)
  })

  // Listens from before the flight is asked for, so that an end in between is not missed.
  const listenFor = (key: string) => {
    const { promise, resolve } = Promise.withResolvers<string | undefined>()
    const waiters = waiting.get(key) ?? new Set()
    waiting.set(key, waiters.add(resolve))
    return {
      within: (ms: number): Promise<string | undefined> => {
        const timer = setTimeout(resolve, ms, undefined)
        return promise.finally(() => clearTimeout(timer))
      },
      stop: () => {
        waiters.delete(resolve)
        if (waiters.size === 0 && waiting.get(key) === waiters) waiting.delete(key)
      },
    }
  }

  const held = new Map<string, number>()
  const prolong = setInterval(() => {
    for (const [key, token] of held) store.holdFlight(key, token, holdForMs).catch(failed)
  }, holdForMs / 3).unref()

  const lead = async <Result>(key: string, token: number, load: () => Promise<Result>): Promise<Result> => {
    held.set(key, token)
    let news = landed
    try {
      return await load()
    } catch (error) {
      news = newsOf(error)
      throw error
    } finally {
      if (held.get(key) === token) held.delete(key)
      store.endFlight(key, token, news).catch(failed)
    }
  }

  return {
    run: async (key, { load, arrived }) => {
      for (;;) {
        const listening = listenFor(key)
        try {
          const begun = await store.beginFlight(key, holdForMs).catch(failed)
          if (!begun) return { result: await load(undefined), joined: false }
          const { token } = begun
          if (token !== null) {
            let joined = true
            const result = await lead(key, token, async () => {
              // Another may have ended its flight after we looked and before we began.
              const found = await arrived()
              if (found !== undefined) return found
              joined = false
              return load(token)
            })
            return { result, joined }
          }
          const news = await listening.within(begun.heldForMs + graceMs)
          const failure = news && failureIn(news)
          if (failure) throw new FailedElsewhere(failure)
          const found = await arrived()
          if (found !== undefined) return { result: found, joined: true }
        } finally {
          listening.stop()
        }
      }
    },
    close: () => {
      clearInterval(prolong)
      stopListening()
    },
  }
}

// Others are told a code and a sentence, and believe no more of what they hear.
const codeForm = /^[a-z][a-z_]{0,39}$/
const longestSentence = 300

/** The failure that news tell of; what can't be understood is no reason to fail. */
const failureIn = (news: string): FailureNews | undefined => {
  try {
    const { code, message, retryAt } = JSON.parse(news) as Partial<FailureNews>
    if (typeof code !== 'string' || !codeForm.test(code) || typeof message !== 'string') return undefined
    const told = { code, message: safeText(message, longestSentence) }
    return typeof retryAt === 'number' ? { ...told, retryAt } : told
  } catch {
    return undefined
  }
}

const newsOf = (error: unknown): string => {
  const retryAt = retryAtOf(error)
  const news: FailureNews = {
    code: error instanceof AbohawaError ? error.code : 'internal',
    message: safeText(messageOf(error), longestSentence),
    ...(retryAt === undefined ? {} : { retryAt }),
  }
  return JSON.stringify(news)
}
