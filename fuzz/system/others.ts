// Checks that other clients are served during an expensive attack: requests cached weather continuously until stopped, and
// reports the longest wait.

import { request } from 'undici'
import { type Finding, slowness } from '../finding.ts'
import { answeredWithinMs } from './health.ts'
import type { System } from './system.ts'

/** Starts sending requests; the returned function stops it. */
export const watchOthers = (system: System): (() => Promise<Finding[]>) => {
  const { host, port } = system.gateway().api
  const headers = { 'x-api-key': system.keys[0].key }
  let longestMs = 0
  let isOver = false
  const watching = (async () => {
    while (!isOver && system.gateway().isAlive()) {
      const started = performance.now()
      await request(`http://${host}:${port}/api/v1/weather/district/3026`, { headers })
        .then(({ body }) => body.dump())
        .catch(() => {})
      longestMs = Math.max(longestMs, performance.now() - started)
    }
  })()
  return async () => {
    isOver = true
    await watching
    return longestMs > answeredWithinMs ? [slowness('others wait', `${Math.round(longestMs)} ms`)] : []
  }
}
