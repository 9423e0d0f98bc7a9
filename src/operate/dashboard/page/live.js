// Keeps the page up to date: reads everything once, then follows the stream of events. When the connection is lost it says so
// and tries again by itself, sooner at first, until the listener answers.

import { Refused, read, send, TokenNeeded } from './listener.js'

/** @typedef {import('./contract.ts').Status} Status */
/** @typedef {import('./contract.ts').Cells} Cells */
/** @typedef {import('./contract.ts').Cell} Cell */

/**
 * @typedef {object} LiveObserver
 * @property {(status: Status) => void} onStatus whole, or without history and with the newest point
 * @property {(cells: Cells, isAll: boolean) => void} onCells all of them, or those that changed
 * @property {() => void} onConnected
 * @property {(error: unknown, retryInMs: number) => void} onLost
 * @property {(isWrong: boolean) => Promise<void>} onTokenNeeded resolves when there is one to try
 */

/** The stream says something each second; when it is silent for so long it is gone. */
const silentForMs = 6_000
const firstWaitMs = 500
const longestWaitMs = 8_000

/** @param {LiveObserver} observer */
export const follow = async observer => {
  let waitMs = firstWaitMs
  let asked = false
  for (;;) {
    try {
      await followOnce(observer, () => {
        waitMs = firstWaitMs
        asked = false
      })
      throw new Error('the stream ended')
    } catch (error) {
      if (error instanceof TokenNeeded) {
        await observer.onTokenNeeded(asked)
        asked = true
        continue
      }
      observer.onLost(error, waitMs)
      await comingBack(waitMs)
      waitMs = Math.min(longestWaitMs, waitMs * 2)
    }
  }
}

/** @param {LiveObserver} observer @param {() => void} onFirst */
const followOnce = async (observer, onFirst) => {
  const ending = new AbortController()
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let silent
  const heard = () => {
    clearTimeout(silent)
    silent = setTimeout(() => ending.abort(new Error('the stream is silent')), silentForMs)
  }
  heard()
  try {
    // The stream first: what changes while the rest is read is not missed.
    const stream = await send('/events', { signal: ending.signal }).catch(async error => {
      // There are as many streams as may be; what is now can be read all the same.
      if (error instanceof Refused) await readAll(observer, ending.signal)
      throw error
    })
    if (!stream.body) throw new Error('the stream has no body')
    /** @type {(() => void)[] | undefined} */
    let waiting = []
    const events = readEvents(stream.body, (event, data) => {
      heard()
      const take = () => {
        if (event === 'status') observer.onStatus(JSON.parse(data))
        else if (event === 'cells') observer.onCells(JSON.parse(data), false)
      }
      if (waiting) waiting.push(take)
      else take()
    })
    // Awaited below; until then its failure must not count as nobody's.
    events.catch(() => {})
    await readAll(observer, ending.signal)
    onFirst()
    observer.onConnected()
    for (const take of waiting) take()
    waiting = undefined
    await events
  } finally {
    clearTimeout(silent)
    ending.abort()
  }
}

/**
 * Reads text/event-stream from the body of a fetch: EventSource can't send the token. Knows `event` and `data`, which is all that the
 * gateway sends.
 * @param {ReadableStream<Uint8Array>} body
 * @param {(event: string, data: string) => void} onEvent
 * @returns {Promise<void>} at the end of the stream
 */
export const readEvents = async (body, onEvent) => {
  const reader = body
    .pipeThrough(/** @type {TransformStream<Uint8Array, string>} */ (new TextDecoderStream()))
    .getReader()
  let rest = ''
  let event = 'message'
  /** @type {string[]} */
  let data = []
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const lines = (rest + value).split(/\r?\n/)
    rest = lines.pop() ?? ''
    for (const line of lines) {
      if (line === '') {
        if (data.length > 0) onEvent(event, data.join('\n'))
        event = 'message'
        data = []
      } else if (line.startsWith('event:')) event = line.slice(6).trim()
      else if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''))
    }
  }
}

/** @param {LiveObserver} observer @param {AbortSignal} signal */
const readAll = async (observer, signal) => {
  const [status, cells] = await Promise.all([read('/status', signal), read('/cells', signal)])
  observer.onStatus(status)
  observer.onCells(cells, true)
}

/** Waits, less long when the browser is online again or the page is looked at again. @param {number} ms */
const comingBack = ms =>
  new Promise(resolve => {
    const done = () => {
      clearTimeout(timer)
      removeEventListener('online', done)
      document.removeEventListener('visibilitychange', seen)
      resolve(undefined)
    }
    const seen = () => {
      if (document.visibilityState === 'visible') done()
    }
    const timer = setTimeout(done, ms)
    addEventListener('online', done)
    document.addEventListener('visibilitychange', seen)
  })
