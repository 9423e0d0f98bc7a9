// Subscriptions to a Redis channel over a separate connection, because a subscribed connection takes no other commands. On a cluster
// any node delivers all messages. Connects with the first subscription and reconnects when the connection ends. Subscribers are notified
// of the first loss, and get no messages until a connection holds.

import { type Redis, ReplyError } from 'ioredis'

export type Subscription = {
  onMessage(text: string): void
  /** Messages may be missed from now on. */
  onLost(): void
  /** The subscription is active, for the first time or again; subscribers must resync. */
  onSubscribed(): void
}

export type RedisSubscriptions = ReturnType<typeof createRedisSubscriptions>

const reconnectAfterMs = 500
const pingEveryMs = 2_000
const holdsAfterMs = 5_000

/**
 * @param channel of all subscriptions
 * @param open creates a connection that connects by itself, once; undefined while there is no server to connect to
 * @param isOfStore whether the server of such a connection is still one of the store's
 * @param failed called with each failure to get a connection that holds, and with null once there is one after a failure
 */
export const createRedisSubscriptions = (
  channel: string,
  open: () => Redis | undefined,
  isOfStore: (connection: Redis) => boolean,
  failed: (reason: Error | null) => void,
) => {
  const subscriptions = new Set<Subscription>()
  let connection: Redis | undefined
  let timer: NodeJS.Timeout | undefined
  let isClosed = false
  let isSubscribed = false
  let lostAt = Number.NEGATIVE_INFINITY
  let failures = 0
  let last: Error | undefined

  /** Whether messages arrive: not before the connection has held for a while after a loss. */
  const arrive = (): boolean => isSubscribed && performance.now() - lostAt >= holdsAfterMs
  const subscribeOn = async (on: Redis): Promise<void> => {
    try {
      await on.subscribe(channel)
      isSubscribed = true
      for (const one of subscriptions) one.onSubscribed()
    } catch (error) {
      last = error instanceof Error ? error : undefined
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
    // A silent channel does not show whether the server is there; an unanswered ping times the connection out.
    // A node that left its cluster answers as before, and hears nothing of it.
    const check = () => {
      if (failures > 0 && arrive()) {
        failures = 0
        failed(null)
      }
      return isOfStore(opened) ? opened.ping().catch(() => {}) : opened.disconnect()
    }
    const pings = setInterval(check, pingEveryMs).unref()
    opened.on('message', (_channel: string, text: string) => {
      for (const one of subscriptions) one.onMessage(text)
    })
    opened.on('ready', () => void subscribeOn(opened))
    opened.on('end', () => {
      clearInterval(pings)
      if (isClosed) return
      const reason = last ?? new Error('the connection was closed')
      if (arrive()) markLost()
      else {
        failures += 1
        // A single failure may be the end of the server, which the connection for commands is about to lose too.
        if (failures > 1 || reason instanceof ReplyError) failed(reason)
      }
      last = undefined
      isSubscribed = false
      lostAt = performance.now()
      reconnectLater()
    })
    opened.on('error', error => {
      last = error
    })
  }
  /** Notifies all subscribers that messages may have been missed. */
  const markLost = (): void => {
    for (const one of subscriptions) one.onLost()
  }
  const reconnectLater = (): void => {
    timer = setTimeout(connect, reconnectAfterMs).unref()
  }

  return {
    /** Returns the function that unsubscribes. */
    subscribe: (subscription: Subscription): (() => void) => {
      subscriptions.add(subscription)
      if (!connection && !timer) connect()
      return () => subscriptions.delete(subscription)
    },
    markLost,
    arrive,
    close: (): void => {
      isClosed = true
      clearTimeout(timer)
      connection?.disconnect()
    },
  }
}
