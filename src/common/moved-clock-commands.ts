// The commands that a process on a moved clock takes from its parent over their channel: move the clock, settle, report. One at a time,
// each with a reply.

import { subscribe } from 'node:diagnostics_channel'
import type { ServerResponse } from 'node:http'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { messageOf } from './errors.ts'
import type { MovedClock } from './moved-clock.ts'

export type Order = { readonly moveTo: number } | { readonly settle: true } | { readonly report: true }

/** The reply to an order, when nothing is under way any more that the clock must wait for. */
export type Reply = {
  /** HTTP requests that were received, and are neither answered nor given up: they wait for a later instant. */
  readonly unanswered: number
  readonly counts: Readonly<Record<string, number>>
  readonly report?: ProcessReport
}

export type ProcessReport = {
  readonly cpuSeconds: number
  /** The most resident memory so far. */
  readonly memoryBytes: number
  readonly loopDelayP50: number
  readonly loopDelayP99: number
}

/** The messages of such a process: once that it serves, then replies. */
export type Message = { readonly ready: string } | Reply | { readonly failed: string }

export type Controlled = {
  readonly url: string
  /** Resolves when nothing is under way that an instant must not pass by. */
  readonly settled?: () => Promise<void>
  readonly counts?: () => Readonly<Record<string, number>>
}

/** Sends that the process serves, and takes commands from now on. The process ends with the one that started it. */
export const takeCommands = (clock: MovedClock, { url, settled, counts }: Controlled): void => {
  let unanswered = 0
  subscribe('http.server.request.start', message => {
    const { response } = message as { response: ServerResponse }
    unanswered += 1
    // Also where the client gives up.
    response.once('close', () => {
      unanswered -= 1
    })
  })
  const delay = monitorEventLoopDelay({ resolution: 10 })
  delay.enable()

  const carryOut = async (order: Order): Promise<Message> => {
    await settled?.()
    if ('moveTo' in order)
      await clock.moveTo(order.moveTo, async work => {
        await work
        await settled?.()
      })
    const reply = { unanswered, counts: counts?.() ?? {} }
    return 'report' in order ? { ...reply, report: reportOf(delay) } : reply
  }

  process.on('message', order => {
    // Another word is for others, such as the one to stop.
    if (typeof order !== 'object' || order === null) return
    carryOut(order as Order).then(send, (error: unknown) => send({ failed: messageOf(error) }))
  })
  const leave = () => process.exit(1)
  process.on('disconnect', leave)
  // Without a channel nobody would move the clock, or end the process.
  if (!process.connected) leave()
  send({ ready: url })
}

const send = (message: Message): void => void process.send?.(message)

const reportOf = (delay: ReturnType<typeof monitorEventLoopDelay>): ProcessReport => {
  const { user, system } = process.cpuUsage()
  const ms = (percent: number): number => delay.percentile(percent) / 1e6
  return {
    cpuSeconds: (user + system) / 1e6,
    memoryBytes: process.resourceUsage().maxRSS * 1024,
    loopDelayP50: ms(50),
    loopDelayP99: ms(99),
  }
}
