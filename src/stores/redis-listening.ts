// Channels of Redis, heard over one connection of their own: a connection that listens can do nothing else, and on a
// cluster any node hears all that is published. It is made when someone first listens, and made anew whenever it ends.

import type { Redis } from 'ioredis'
import type { RecordObserver } from './records.ts'

type Hearing = {
  message(text: string): void
  /** Something may not be heard, for now or from before. */
  lost(): void
  /** It listens, for the first time or again; what was said until now was missed. */
  again(): void
}

export type RedisListening = {
  /** The answer ends the listening. */
  listen(channel: string, hearing: Hearing): () => void
  /** Whoever listens is to take it that something was missed. */
  doubt(): void
  close(): void
}

const againAfterMs = 500
const askEveryMs = 2_000
// Messages have some hundred bytes, and all that come at once are read at once.
const mostPendingBytes = 1_048_576
const tooLarge = `it is larger than ${mostPendingBytes} bytes, and the connection was made anew`

/** @param open makes a connection that connects by itself and only once, or none while there is nothing to connect to */
export const createRedisListening = (
  open: () => Redis | undefined,
  observer: Pick<RecordObserver, 'recordRefused'>,
): RedisListening => {
  const hearings = new Map<string, Set<Hearing>>()
  let connection: Redis | undefined
  let timer: NodeJS.Timeout | undefined
  let isOver = false

  const subscribe = async (on: Redis, channels: readonly string[]): Promise<void> => {
    try {
      await on.subscribe(...channels)
      for (const channel of channels) for (const hearing of hearings.get(channel) ?? []) hearing.again()
    } catch {
      on.disconnect()
    }
  }
  const connect = (): void => {
    const opened = open()
    connection = opened
    if (!opened) {
      connectLater()
      return
    }
    // A message is held until it is whole, so what comes without anything being whole is bounded.
    let pending = 0
    const whole = () => {
      pending = 0
    }
    // Nothing is said on a silent channel whether or not the server is there; unanswered, the connection is given up.
    const asking = setInterval(() => opened.ping().then(whole, () => {}), askEveryMs).unref()
    opened.on('message', (channel: string, text: string) => {
      whole()
      for (const hearing of hearings.get(channel) ?? []) hearing.message(text)
    })
    opened.on('connect', () => {
      opened.stream.on('data', (bytes: Buffer) => {
        pending += bytes.length
        if (pending <= mostPendingBytes) return
        // At once: an orderly end would take in the rest first.
        opened.stream.destroy()
        observer.recordRefused({ record: 'message', name: 'a channel', fault: tooLarge })
      })
    })
    opened.on('ready', () => void subscribe(opened, [...hearings.keys()]))
    opened.on('close', doubt)
    opened.on('end', () => {
      clearInterval(asking)
      connectLater()
    })
    // Told by the connection that commands go over.
    opened.on('error', () => {})
  }
  const doubt = (): void => {
    for (const set of hearings.values()) for (const hearing of set) hearing.lost()
  }
  const connectLater = (): void => {
    if (!isOver) timer = setTimeout(connect, againAfterMs).unref()
  }

  return {
    listen: (channel, hearing) => {
      const set = hearings.get(channel) ?? new Set()
      hearings.set(channel, set.add(hearing))
      if (!connection && !timer) connect()
      else if (set.size === 1 && connection?.status === 'ready') void subscribe(connection, [channel])
      return () => set.delete(hearing)
    },
    doubt,
    close: () => {
      isOver = true
      clearTimeout(timer)
      connection?.disconnect()
    },
  }
}
