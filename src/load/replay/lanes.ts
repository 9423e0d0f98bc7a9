// The connections of one sender: opens some at once and more as they are needed, up to a number, hands out the free ones in turn,
// and sends a request again once when the server has closed a kept connection before it read it, as every client does. Times nothing out.

import { type Answer, createConnection } from './http1.ts'
import { createCapacity, isOwnLimit } from './own-limits.ts'
import type { RequestForm } from './schedule.ts'
import { connectTo, type Target } from './target.ts'

/** One request on its way. */
export type Job = {
  readonly form: RequestForm
  readonly key: string | undefined
  /** Sent as `if-none-match`. */
  readonly etag: string | undefined
  readonly keepsBody: boolean
  /** Whether it is on its second connection. */
  again: boolean
}

/** Takes one request at a time. */
export type Lane<Sent> = {
  send(job: Sent): void
  /** Ends the connection; its request ends with the reason. */
  end(reason: string): void
}

export type LaneEvents<Sent> = {
  onAnswer(job: Sent, answer: Answer): void
  onFailure(job: Sent, reason: string): void
  /** A lane can take a request: after an answer, and after a failure. */
  onFree(): void
}

export type Lanes<Sent> = {
  /** Undefined while all are busy. */
  take(): Lane<Sent> | undefined
  /** Those with a request in flight, the oldest first. */
  readonly busy: ReadonlyMap<Sent, Lane<Sent>>
  close(): void
}

// So many are open before one is used again: processes that share a port get connections, and not requests.
const fewestOpen = 16

export const http1Lanes = <Sent extends Job>(
  target: Target,
  most: number,
  events: LaneEvents<Sent>,
): Lanes<Sent> => {
  const capacity = createCapacity(most)
  // The one that was free first comes next.
  const free: Lane<Sent>[] = []
  const busy = new Map<Sent, Lane<Sent>>()
  const open = new Set<Lane<Sent>>()
  const openLane = (): Lane<Sent> => {
    let job: Sent | undefined
    let answers = 0
    const connection = createConnection(onData => connectTo(target, onData), {
      onAnswer: answer => {
        const of = job as Sent
        job = undefined
        answers += 1
        busy.delete(of)
        if (answer.head.closes) open.delete(lane)
        else free.push(lane)
        events.onAnswer(of, answer)
        events.onFree()
      },
      onEnd: (reason, early) => {
        open.delete(lane)
        const at = free.indexOf(lane)
        if (at >= 0) free.splice(at, 1)
        if (isOwnLimit(reason)) capacity.limited(open.size)
        const of = job
        if (!of) return
        job = undefined
        busy.delete(of)
        if (early && answers > 0 && !of.again && (reason === 'reset' || reason === 'closed')) {
          of.again = true
          openLane().send(of)
          return
        }
        events.onFailure(of, reason)
        events.onFree()
      },
    })
    const lane: Lane<Sent> = {
      send: next => {
        job = next
        busy.set(next, lane)
        connection.send(headText(target, next), next.form.method === 'HEAD', next.keepsBody)
      },
      end: reason => connection.end(reason),
    }
    open.add(lane)
    return lane
  }

  return {
    busy,
    take: () => {
      const isFew = open.size < fewestOpen && capacity.allows(open.size)
      return (isFew ? undefined : free.shift()) ?? (capacity.allows(open.size) ? openLane() : undefined)
    },
    close: () => {
      for (const lane of [...open]) lane.end('closed')
    },
  }
}

/** The head of a request as HTTP/1.1 has it. */
const headText = ({ authority, base }: Target, { form, key, etag }: Job): string =>
  `${form.method} ${base}${form.path} HTTP/1.1\r\nhost: ${authority}\r\n${
    form.accepts === undefined ? '' : `accept-encoding: ${form.accepts}\r\n`
  }${key === undefined ? '' : `x-api-key: ${key}\r\n`}${etag === undefined ? '' : `if-none-match: ${etag}\r\n`}\r\n`
