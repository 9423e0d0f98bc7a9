// Subscriptions to Redis channels over a connection of their own, since a subscribed connection takes no other commands. On a
// cluster any node delivers all messages. Connects with the first subscription and reconnects when the connection ends.

import type { Redis } from 'ioredis'
import type { RecordObserver } from '../records.ts'

type Subscription = {
  onMessage(text: string): void
  /** Messages may be missed from now on. */
  onLost(): void
  /** The subscription is active, for the first time or again; subscribers must resync. */
  onSubscribed(): void
}

export type RedisSubscriptions = {
  /** Returns the function that unsubscribes. */
  subscribe(channel: string, subscription: Subscription): () => void
  /** Notifies all subscribers that messages may have been missed. */
  markLost(): void
  close(): void
}

const reconnectAfterMs = 500
const pingEveryMs = 2_000
// A message has some hundred bytes; this bounds what may arrive before one is complete.
const maxPendingBytes = 1_048_576
const tooLarge = `it is larger than ${maxPendingBytes} bytes, and the connection was reset`

/**
 * @param open creates a connection that connects by itself, once; undefined while there is no server to connect to
 * @param isOfStore whether the server of such a connection is still one of the store's
 */
export const createRedisSubscriptions = (
  open: () => Redis | undefined,
  isOfStore: (connection: Redis) => boolean,
  observer: Pick<RecordObserver, 'recordRefused'>,
): RedisSubscriptions => {
  const subscriptions = new Map<string, Set<Subscription>>()
  let connection: Redis | undefined
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  const subscribeOn = async (on: Redis, channels: readonly string[]): Promise<void> => {
    try {
      await on.subscribe(...channels)
      for (const channel of channels) for (const one of subscriptions.get(channel) ?? []) one.onSubscribed()
    } catch {
      on.disconnect()
    }
  }
  const connect = (): void => {
    const opened = open()
    connection = opened
    if (!opened) {
      reconnectLater()
      return
    }
    // ioredis buffers an incomplete message, so the bytes since the last complete reply are bounded.
    let pending = 0
    const whole = () => {
      pending = 0
    }
    // A silent channel does not show whether the server is there; an unanswered ping times the connection out.
    // A node that left its cluster answers as before, and hears nothing of it.
    const check = () => (isOfStore(opened) ? opened.ping().then(whole, () => {}) : opened.disconnect())
    const pings = setInterval(check, pingEveryMs).unref()
    opened.on('message', (channel: string, text: string) => {
      whole()
      for (const one of subscriptions.get(channel) ?? []) one.onMessage(text)
    })
    opened.on('connect', () => {
      opened.stream.on('data', (bytes: Buffer) => {
        pending += bytes.length
        if (pending <= maxPendingBytes) return
        // Destroyed, because an orderly end would read the rest first.
        opened.stream.destroy()
        observer.recordRefused({ record: 'message', name: 'a channel', fault: tooLarge })
      })
    })
    opened.on('ready', () => void subscribeOn(opened, [...subscriptions.keys()]))
    opened.on('close', markLost)
    opened.on('end', () => {
      clearInterval(pings)
      reconnectLater()
    })
    // The connection for commands reports errors.
    opened.on('error', () => {})
  }
  const markLost = (): void => {
    for (const set of subscriptions.values()) for (const one of set) one.onLost()
  }
  const reconnectLater = (): void => {
    if (!isClosed) timer = setTimeout(connect, reconnectAfterMs).unref()
  }

  return {
    subscribe: (channel, subscription) => {
      const set = subscriptions.get(channel) ?? new Set()
      subscriptions.set(channel, set.add(subscription))
      if (!connection && !timer) connect()
      else if (set.size === 1 && connection?.status === 'ready') void subscribeOn(connection, [channel])
      return () => set.delete(subscription)
    },
    markLost,
    close: () => {
      isClosed = true
      clearTimeout(timer)
      connection?.disconnect()
    },
  }
}
