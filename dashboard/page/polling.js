// Reads the status every two seconds and the cells every four while the page is seen, and reconnects after a loss.

import { read, TokenNeeded } from './listener.js'

/** @typedef {import('./contract.ts').Status} Status */
/** @typedef {import('./contract.ts').Cells} Cells */

/**
 * @typedef {object} Observer
 * @property {(status: Status) => void} onStatus
 * @property {(cells: Cells) => void} onCells all of them
 * @property {() => void} onConnected
 * @property {(error: unknown) => void} onLost
 * @property {(isWrong: boolean) => Promise<void>} onTokenNeeded resolves when there is one to try
 */

const everyMs = 2_000
const cellsEvery = 2
/** A listener that is silent for so long is gone. */
const silentForMs = 10_000
const firstWaitMs = 500
const longestWaitMs = 8_000

/** @param {Observer} observer */
export const follow = async observer => {
  let waitMs = firstWaitMs
  let asked = false
  /** How often was read without a fault. */
  let reads = 0
  for (;;) {
    try {
      const [status, cells] = await readOnce(reads % cellsEvery === 0)
      if (reads === 0) observer.onConnected()
      observer.onStatus(status)
      if (cells) observer.onCells(cells)
      waitMs = firstWaitMs
      asked = false
      reads += 1
      await untilSeenAfter(everyMs)
    } catch (error) {
      reads = 0
      if (error instanceof TokenNeeded) {
        await observer.onTokenNeeded(asked)
        asked = true
        continue
      }
      observer.onLost(error)
      await untilSeenAfter(waitMs)
      waitMs = Math.min(longestWaitMs, waitMs * 2)
    }
  }
}

/** @param {boolean} withCells @returns {Promise<[Status, Cells | undefined]>} */
const readOnce = withCells => {
  const signal = AbortSignal.timeout(silentForMs)
  return Promise.all([read('/status', signal), withCells ? read('/cells', signal) : undefined])
}

/** Resolves after a time, once the page is seen; sooner when it is seen again or the browser is online again. @param {number} ms */
const untilSeenAfter = ms =>
  new Promise(resolve => {
    const done = () => {
      if (document.hidden) return
      clearTimeout(timer)
      removeEventListener('online', done)
      document.removeEventListener('visibilitychange', done)
      resolve(undefined)
    }
    const timer = setTimeout(done, ms)
    addEventListener('online', done)
    document.addEventListener('visibilitychange', done)
  })
