// The messages between a worker and the process that started it. Both ends import this file; the first process keeps time
// by the heartbeats (pool.ts), the worker only sends them.

import type { LoadedConfig } from '../config/load.ts'
import { frozen } from '../config/values.ts'

/** A configuration, and the files that it was read from. */
export type InEffect = Pick<LoadedConfig, 'config'>

/** The messages of a worker: once it serves, at short intervals, and its question for the configuration. */
export type WorkerMessage =
  | { readonly ready: { readonly apiUrl: string }; readonly asks?: undefined }
  | { readonly heartbeat: true; readonly ready?: undefined; readonly asks?: undefined }
  | { readonly asks: 'configuration'; readonly ready?: undefined }

/** The command to finish requests in flight and to end. */
export type WorkerStop = 'stop'

/** The answer to a worker that asks. */
export type WorkerConfiguration = {
  readonly inEffect: InEffect
  /** The same for all workers, in base64. */
  readonly ticketKey: string
}

export const heartbeatEveryMs = 1_000

/** Sends a message to the process that started this one, as long as it listens. */
export const sendToFirst = (message: WorkerMessage): void => {
  // Without the callback a channel that has just closed would end the process.
  if (process.connected) process.send?.(message, undefined, undefined, () => {})
}

/** From now on a worker that does not send them does not respond. */
export const sendHeartbeats = (): void => {
  const send = () => sendToFirst({ heartbeat: true })
  send()
  setInterval(send, heartbeatEveryMs).unref()
}

/** The configuration of the other workers: the files may differ by now, by a refused change or one that waits for a restart. */
export const configurationInEffect = (): Promise<InEffect & { readonly ticketKey: Buffer }> =>
  new Promise(resolve => {
    const take = (message: unknown): void => {
      const { inEffect, ticketKey } = message as Partial<WorkerConfiguration>
      if (!inEffect || ticketKey === undefined) return
      process.off('message', take)
      resolve({
        ...inEffect,
        config: frozen(inEffect.config),
        ticketKey: Buffer.from(ticketKey, 'base64'),
      })
    }
    process.on('message', take)
    sendToFirst({ asks: 'configuration' })
  })
